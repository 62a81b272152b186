/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_SERVER_INTERNAL_H
#define TR_IO_SERVER_INTERNAL_H

#include "daemon/base/list.h"
#include "daemon/core/failure.h"
#include "daemon/io/access.h"
#include "daemon/io/batch.h"
#include "daemon/io/gather.h"
#include "daemon/io/input.h"
#include "daemon/io/loop.h"
#include "daemon/io/peer.h"
#include "daemon/io/server.h"
#include "daemon/io/unsent.h"

struct tr_connection;

/* How many connections a user has. */
struct tr_server_user {
        uid_t uid;
        uint32_t connections;
};

/* All of it is the loop thread's; `loop` and `unsent` are reached by other threads as their own headers allow, from a
 * connection that is not closed, under its lock. */
struct tr_server {
        struct tr_loop *loop;
        struct tr_system *system;
        struct tr_feed *feed;
        struct tr_traces *traces;
        struct tr_server_limits limits;
        struct tr_access access;
        void (*shutdown)(void *userdata);
        struct tr_failure *(*reload)(void *userdata);
        void (*write_metrics)(void *userdata, struct tr_writer *text);
        void *userdata;

        struct tr_list listeners;
        struct tr_list connections;
        uint32_t connections_count;
        uint32_t adopted_count;    /* of those, the ones that nobody is counted for */
        uint32_t over_limit_count; /* of those, the ones that are there to be refused */
        uint64_t over_limit_total;
        uint64_t over_limit_logged_ns; /* when the log last spoke of them; 0: never */
        struct tr_server_user *users;
        uint32_t users_count;

        struct tr_unsent *unsent;
        struct tr_piece *piece;   /* what is being read */
        struct tr_batch batch;    /* what is being handed over of it */
        struct tr_gather gather;  /* what is written meanwhile */
        struct tr_writer scratch; /* the result that a method writes */
        uint64_t ignored_total;   /* responses and notifications that nobody waits for */
};

/* A connection was accepted: takes the socket. */
void tr_server_accept(struct tr_server *server, int take_fd);
/* A connection is closed: it leaves the list, whose reference is dropped. */
void tr_server_leave(struct tr_server *server, struct tr_connection *connection);

#endif
