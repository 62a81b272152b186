/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_CONNECTION_H
#define TR_IO_CONNECTION_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/base/list.h"
#include "daemon/base/lock.h"
#include "daemon/core/message.h"
#include "daemon/core/timer.h"
#include "daemon/io/feed.h"
#include "daemon/io/input.h"
#include "daemon/io/loop.h"
#include "daemon/io/outgoing.h"
#include "daemon/io/output.h"
#include "daemon/io/peer.h"
#include "daemon/io/pending.h"
#include "daemon/io/response.h"
#include "daemon/io/unsent.h"

struct tr_callee;
struct tr_confined;
struct tr_server;
struct tr_session;

/*
 * One connection. The loop thread reads, routes, and keeps what belongs to receiving; whoever answers a request (the
 * thread of the actor, mostly) takes it out of `pending`, writes to `output` and sends, all under the connection's
 * lock. Under it only the locks of `unsent`, the feed and the loop are acquired, and never another connection's or a mailbox's.
 *
 * It is reference-counted: each request that is not put away holds a reference (it is the message's asker), so that
 * it may outlive its socket. What is left of it then is closed: it takes no answers, and reaches neither server nor
 * loop.
 */
struct tr_connection {
        struct tr_asker asker;       /* of its requests */
        struct tr_asker reply_asker; /* of those whose outcome comes as a notification (reply.h) */
        _Atomic uint32_t refs;

        /* Immutable. */
        struct tr_server *server;
        struct tr_peer peer;
        size_t frame_max; /* bytes of a frame, in both directions */
        bool over_limit;  /* one too many: its first request is answered so, and that is all */

        /* The loop thread's. */
        struct tr_confined *confined; /* what it is bound to (confined.h); NULL: nothing, it has connected by itself */
        struct tr_list link; /* among the server's */
        unsigned int roles;  /* what the rules in effect grant it */
        char *const *names;  /* the same: patterns, borrowed from them; NULL: every name */
        struct tr_list gather_link; /* among those that something was written to while a piece is read (gather.h) */
        struct event read_event;
        struct event write_event;
        struct tr_input input;
        struct tr_session *session;     /* what it spawned; NULL until it spawns */
        struct tr_callee *listening;    /* strong: how others reach it; NULL until it listens */
        struct tr_subscriptions subscriptions;
        struct tr_response_form form;   /* of what is received from now on */
        uint64_t timeout_ns;            /* of its requests that name none; TR_NEVER: none */
        struct tr_timer deadline_timer; /* fires at armed_ns */
        uint64_t armed_ns;              /* the earliest deadline of what is pending, or before it */
        struct tr_timer stall_timer;
        unsigned int stalled_looks; /* while it is blocked: how often it was found so */
        uint64_t sent_before;   /* of its output, when it was last looked at */
        bool eof;               /* the peer has closed at least its side for writing */
        bool writing;           /* the write event is added: the socket was full */
        bool paused;            /* not read from until its output is read and its rest is over */
        bool retained; /* what is kept of the input may hold whole frames: it stopped there when it was paused */
        bool bad;      /* what comes is no frames: it is read and thrown away */
        bool flooding; /* of what was read last, something was refused for want of room */
        bool resting;  /* therefore it is not read from until rest_timer fires */
        uint64_t rest_ns; /* how long it rests, or rested last; 0: what was read last was taken whole */
        struct tr_timer rest_timer;
        size_t piece_bytes; /* as much is read from it at once */
        bool answered; /* the loop wrote to its output in this round */
        uint32_t refs_ahead; /* references that were taken for requests to come */
        bool asked;    /* in the piece that is gone through, something became pending */
        bool lone;     /* the last piece was one frame: its peer asks, and waits for the answer (receive.c) */
        uint32_t waits_to_skip, waits_skipped; /* the loop does not stay awake for that many lone requests, and for so many it did not */

        struct tr_lock lock;
        int fd TR_GUARDED_BY(lock);     /* -1: closed. The loop thread may read it without the lock */
        bool ended TR_GUARDED_BY(lock); /* nothing more is received: closed when nothing is pending and all is sent */
        const char *doom TR_GUARDED_BY(lock); /* why it is to be closed at once; NULL: it is not */
        struct tr_pending pending TR_GUARDED_BY(lock);
        uint32_t replies_total; /* the loop's: how many requests had a reply, for ids that no request has */
        _Atomic uint64_t reply_bytes; /* of the methods chosen for those that are pending */
        struct tr_output output TR_GUARDED_BY(lock);
        struct tr_outgoing outgoing TR_GUARDED_BY(lock); /* what others have to say to it */
        struct tr_list servings TR_GUARDED_BY(lock);     /* serving.c: the components that it serves */
        _Atomic uint8_t call_form; /* enum tr_form: of what goes out so, from now on */
        struct tr_unsent_entry unsent; /* see there */
        struct tr_work work; /* posted, with a reference, where the loop has to look at it (tr_connection_attend) */
};

/* A connection on an accepted socket. Takes the socket and the peer; 0 or a negative errno. */
TR_MUST_CHECK int tr_connection_new(struct tr_server *server, int take_fd, struct tr_peer *take_peer, bool over_limit,
                                    struct tr_connection **ret_connection);
/* It gets the roles and names that the server's rules grant its peer. */
void tr_connection_authorize(struct tr_connection *connection);
/* It is read from now on. It is in the server's list, which has the reference. */
void tr_connection_start(struct tr_connection *connection);
struct tr_connection *tr_connection_ref(struct tr_connection *connection);
/* NULL is fine. */
void tr_connection_unref(struct tr_connection *connection);
void tr_connection_unref_many(struct tr_connection *connection, uint32_t count);

/* All that follows is for the loop thread, but where it says otherwise. */

/* Ends it: nobody is answered any more, what is queued of its asks never runs, its session is told to stop. */
void tr_connection_close(struct tr_connection *connection);
/* Does what its state asks for: waits for room in the socket, reads on, or closes it. False where it is closed. */
bool tr_connection_attend(struct tr_connection *connection);
/* Nothing more is received: it is closed when nothing is pending and all is sent. It is to be attended to after. */
void tr_connection_set_ended(struct tr_connection *connection);
/* The session of what it starts, made when it is needed first; borrowed. NULL: out of memory. */
struct tr_session *tr_connection_session(struct tr_connection *connection);
/* It is closed soon, whatever is pending. */
void tr_connection_doom(struct tr_connection *connection, const char *why);
/* Nothing more comes: the peer has closed its side for writing, or all of it. */
void tr_connection_on_eof(struct tr_connection *connection);

/* Answering: answer.c. */

/* Any thread: the loop attends to it soon. */
void tr_connection_call_loop_locked(struct tr_connection *connection) TR_REQUIRES(connection->lock);

/* Something was written for good, or, by what tr_output_end() said, could not be: then the connection has to end. */
void tr_connection_written_locked(struct tr_connection *connection, int r) TR_REQUIRES(connection->lock);
/* Any thread, while it is not closed: sends what was written, or sees to it that the loop does. `more`: the caller writes
 * more soon, and delivers that. */
void tr_connection_deliver_locked(struct tr_connection *connection, bool more) TR_REQUIRES(connection->lock);

/* A request that is not pending; sent by tr_connection_push(). */
void tr_connection_answer(struct tr_connection *connection, uint32_t id, const void *value, size_t bytes);
void tr_connection_refuse(struct tr_connection *connection, uint32_t id, const struct tr_failure *failure);
void tr_connection_refuse_locked(struct tr_connection *connection, uint32_t id, const struct tr_failure *failure)
        TR_REQUIRES(connection->lock);
void tr_connection_acknowledge_locked(struct tr_connection *connection, uint32_t id) TR_REQUIRES(connection->lock);
/* A request that was pending, and that the caller has settled. */
void tr_connection_reject(struct tr_connection *connection, struct tr_message *message, struct tr_failure *failure,
                          enum tr_ran ran);
/* Writes a frame that no request of its own asked for. False, and nothing was written, where too much lies unread already, or
 * memory is short. Sent by tr_connection_push(), after which it is to be attended to. */
bool tr_connection_tell(struct tr_connection *connection, void (*write)(struct tr_writer *writer, const void *userdata),
                        const void *userdata);
/* Sends what the loop has written since the last time. */
void tr_connection_push(struct tr_connection *connection);
/* So much of its output lies unread that no more is read from it. */
bool tr_connection_is_congested(struct tr_connection *connection);
/* For the tick (daemon/io/unsent.h). */
bool tr_connection_send_unsent(struct tr_unsent_entry *entry);
extern const struct tr_asker_ops tr_connection_asker_ops;

/* Pending requests: expect.c. */

/* Makes the connection the asker of a message: with which id, in which form, for how long. NULL, or no-memory. */
struct tr_failure *tr_connection_sign(struct tr_connection *connection, struct tr_message *message, uint32_t id,
                                      uint64_t timeout_ns);
/* Makes a signed message pending: NULL, or why not: a duplicate, too many, no memory. */
struct tr_failure *tr_connection_expect(struct tr_connection *connection, struct tr_message *message);
struct tr_failure *tr_connection_expect_locked(struct tr_connection *connection, struct tr_message *message)
        TR_REQUIRES(connection->lock);
/* It is pending no more, without an answer. */
void tr_connection_forget(struct tr_connection *connection, struct tr_message *message);
/* NULL, or why no request of that id may come now. */
struct tr_failure *tr_connection_check_id(struct tr_connection *connection, uint32_t id);
/* Answers a pending request with `cancelled`; false where there is none, or where it is being answered right now. */
bool tr_connection_cancel(struct tr_connection *connection, uint32_t id);
/* The timer of deadlines fires. */
void tr_connection_on_deadline(struct tr_timer *timer);

/* Reading: receive.c. */

void tr_connection_on_readable(int fd, short what, void *userdata);
/* The timer of its rest fires. */
void tr_connection_on_rested(struct tr_timer *timer);

#endif
