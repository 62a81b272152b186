/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CLIENT_CONNECTION_H
#define TR_CLIENT_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#include "client/asked.h"
#include "client/failure.h"
#include "client/incoming.h"
#include "client/pending.h"
#include "client/standing.h"
#include "client/stream.h"
#include "client/troupe.h"
#include "proto/frame.h"

#define TR_MUST_CHECK __attribute__((warn_unused_result))

/*
 * One connection. Its stages are: connecting (while the daemon's backlog is full), open, and over,
 * which it stays; with TROUPE_RECONNECT it is apart instead, and comes back. What the program may still be owed when it
 * has ended lies in `answered` until troupe_process() or troupe_free() has run every callback.
 */
struct troupe {
        int fd;    /* -1 while it is apart, and once it is over */
        unsigned int flags;
        pid_t pid; /* of the process that connected */
        struct sockaddr_un address;
        bool connecting;
        bool freed;         /* troupe_free() was called inside a callback: released when the last one has returned */
        unsigned int depth; /* callbacks that are running now, or about to */

        bool apart;          /* TROUPE_RECONNECT: there is no connection, and there is to be one */
        int64_t retry_at_ms; /* when to try */
        int retry_after_ms;  /* how long to wait after the next end */

        bool is_greeted;        /* all that the connection begins with is written: */
        uint32_t greeting_left; /* so many of those requests are not answered */
        bool is_restoring;      /* the program is told when they are */
        bool tell_lost;
        bool tell_restored;
        troupe_link_callback *link_callback;
        void *link_userdata;
        char handle[TROUPE_HANDLE_SIZE]; /* that it listens under; "" where it does not */

        struct tr_output output;
        struct tr_input input;
        struct tr_scanner scanner;
        struct tr_pending_table table;    /* not answered */
        struct tr_pending_queue answered; /* answered while nobody could take it, oldest first */
        struct tr_incoming_queue kept;    /* the same for what is no answer */
        uint64_t orders;                  /* see tr_connection_order() */
        struct tr_standing_list standing;
        struct troupe_asked *asked; /* of it, and not answered: the latest first */
        bool stalled; /* the input begins with a whole frame that could not be dealt with when it was read */

        uint32_t requests_max;
        uint32_t daemon_requests_max; /* as its hello said */
        size_t output_max_bytes;
        troupe_room_callback *room_callback;
        void *room_userdata;
        bool room_wanted;

        struct tr_failure failure;  /* what troupe_error() answers */
        struct troupe_value answer; /* of the last call that waited */
};

/* What every call begins with: 0, -ECHILD, or -ENOTCONN. Forgets the last error. */
TR_MUST_CHECK int tr_connection_check(struct troupe *troupe);
/* It has ended, with it all that was asked (see tr_dispatch_lose_all): from here on it is over or, where it restores
 * itself and this is not for good, apart. */
void tr_connection_end(struct troupe *troupe, const struct troupe_value *why, bool for_good);
/* Frees it with everything that is in it; runs nothing. */
void tr_connection_release(struct troupe *troupe);
static inline bool tr_connection_is_over(const struct troupe *troupe) {
        return troupe->fd < 0 && !troupe->apart;
}
static inline bool tr_connection_is_open(const struct troupe *troupe) {
        return troupe->fd >= 0 && !troupe->connecting;
}
/* The daemon is there, and wants it: the next time that it ends there is no reason to be slow. */
void tr_connection_is_good(struct troupe *troupe);

/* Tries again to connect, where that is not done and it is time. */
void tr_connection_advance(struct troupe *troupe);
/* Writes what the socket takes now. */
void tr_connection_flush(struct troupe *troupe);
/* One step of a call that waits: until something has come or gone. What comes for others is kept. 0, -ENOMEM
 * or -EOVERFLOW. */
TR_MUST_CHECK int tr_connection_wait(struct troupe *troupe);

/* A number that is larger than all before: of what is kept, the lower came first. */
static inline uint64_t tr_connection_order(struct troupe *troupe) {
        return troupe->orders++;
}

/* Room for one more request, and whether there is half of it. */
bool tr_connection_has_room(const struct troupe *troupe);
bool tr_connection_has_much_room(const struct troupe *troupe);

#endif
