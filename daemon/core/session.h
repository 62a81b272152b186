/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_SESSION_H
#define TR_CORE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/base/list.h"
#include "daemon/core/target.h"

/*
 * What the life of actors is tied to: a connection, a running program, or the daemon itself. What a member spawns joins its
 * session. Ending a session stops its members orderly, and kills them after the grace. Members may still join while it
 * ends (an actor that drains may spawn): they are stopped at once, orderly too.
 *
 * Reference-counted. Everything in it is guarded by the system's session lock, under which nothing else is acquired.
 */
struct tr_session {
        struct tr_system *system;
        uint32_t refs;
        bool ending;
        enum tr_stop_reason reason;
        char name[32];          /* for people: "daemon", "connection", "program" */
        struct tr_list members; /* targets, by session_link */
        struct tr_list stopped; /* members that were told to stop when it ended */
        uint32_t count;
        struct tr_target *owner;            /* of an inner session, until it has ended; borrowed */
        struct tr_session *dissolved_into;  /* an inner session whose owner has ended: where those go that join it late; strong */
        /* Called once, on the thread where the last member left after the end, or in tr_session_end(); no lock is held. */
        void (*on_empty)(void *userdata);
        void *userdata;
};

struct tr_session *tr_session_new(struct tr_system *system);
struct tr_session *tr_session_ref(struct tr_session *session);
void tr_session_unref(struct tr_session *session);

/* A new reference to the session a target is in, or NULL. */
struct tr_session *tr_session_of(struct tr_target *target);
/* Joins; the target is in none. Where the session is ending already, the target is stopped. */
void tr_session_join(struct tr_session *session, struct tr_target *target);
/* Moves it to the daemon's own session. Nothing where it has ended. */
void tr_session_detach(struct tr_target *target);
/* It has ended. Who is left in its inner session goes to the one that it leaves, and is stopped. */
void tr_session_leave(struct tr_target *target);

/*
 * Inner sessions: what a supervisor starts is in one of its own, which belongs to the session that the supervisor is in at the
 * time, and ends with the supervisor and not before.
 */

/* A new reference to that of an actor, made where there is none; the daemon's session where the actor has left its own. NULL: out of
 * memory. */
struct tr_session *tr_session_inside(struct tr_target *owner);
/* Whether it is for its supervisor to stop it. */
bool tr_session_is_supervised(struct tr_target *target);
/* A new reference to the session a target is in, all inner ones looked through; or NULL. */
struct tr_session *tr_session_around(struct tr_target *target);

/* Stops all members orderly; killed after grace_ns. on_empty may be NULL. */
void tr_session_end(struct tr_session *session, enum tr_stop_reason reason, uint64_t grace_ns, void (*on_empty)(void *userdata),
                    void *userdata);
/* Kills what is left. */
void tr_session_kill(struct tr_session *session);

#endif
