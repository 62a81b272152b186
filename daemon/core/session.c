/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions. A member is in `members`, or, once the session has told it to stop,
 * in `stopped`; it leaves when it has ended, or moves to the daemon's session
 * when it is detached.
 *
 * An inner session is a supervisor's: what it started is in there, and is
 * stopped by nobody but it, one after another, however the supervisor comes to
 * its own end. What is left when it has ended (all of it after a kill) moves
 * to the session that the supervisor was in, and is stopped there. That one
 * cannot become empty in between, since the supervisor leaves it last.
 *
 * Membership changes rarely, so one lock of the system's guards all of it.
 * Under it nothing is called and nothing else is acquired: members are stopped
 * and the one who waits for the end is told after it is released.
 */
#include "daemon/core/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/core/system.h"

struct tr_session *tr_session_new(struct tr_system *system) {
        struct tr_session *session = calloc(1, sizeof(*session));
        if (!session)
                return NULL;
        session->system = system;
        session->refs = 1;
        snprintf(session->name, sizeof(session->name), "%s", "connection");
        tr_list_init(&session->members);
        tr_list_init(&session->stopped);
        return session;
}

struct tr_session *tr_session_ref(struct tr_session *session) {
        tr_lock_acquire(&session->system->session_lock);
        session->refs++;
        tr_lock_release(&session->system->session_lock);
        return session;
}

void tr_session_unref(struct tr_session *session) {
        if (!session)
                return;
        struct tr_system *system = session->system;
        tr_lock_acquire(&system->session_lock);
        bool last = --session->refs == 0;
        tr_lock_release(&system->session_lock);
        if (!last)
                return;
        tr_session_unref(session->dissolved_into);
        free(session);
}

struct tr_session *tr_session_of(struct tr_target *target) {
        tr_lock_acquire(&target->system->session_lock);
        struct tr_session *session = target->session;
        if (session)
                session->refs++;
        tr_lock_release(&target->system->session_lock);
        return session;
}

/* Where somebody goes who joins a session now. */
static struct tr_session *session_that_is_left(struct tr_session *session) {
        while (session->dissolved_into)
                session = session->dissolved_into;
        return session;
}

static void session_add_locked(struct tr_session *session, struct tr_target *target) {
        session->refs++;
        session->count++;
        target->session = session;
        tr_list_append(session->ending ? &session->stopped : &session->members, &target->session_link);
}

/* Takes a member out. Answers its session, whose reference the caller drops, and whether that was the last one of an ending session. */
static struct tr_session *session_remove_locked(struct tr_target *target, bool *ret_empty) {
        struct tr_session *session = target->session;
        if (!session)
                return NULL;
        tr_list_unlink(&target->session_link);
        target->session = NULL;
        session->count--;
        *ret_empty = session->ending && session->count == 0;
        return session;
}

/* Tells whoever waits that an ending session is empty. */
static void session_empty(struct tr_session *session) {
        tr_lock_acquire(&session->system->session_lock);
        void (*on_empty)(void *userdata) = session->on_empty;
        session->on_empty = NULL;
        tr_lock_release(&session->system->session_lock);
        if (on_empty)
                on_empty(session->userdata);
}

void tr_session_join(struct tr_session *session, struct tr_target *target) {
        struct tr_system *system = session->system;
        tr_lock_acquire(&system->session_lock);
        bool dissolved = session->dissolved_into;
        session = session_that_is_left(session);
        session_add_locked(session, target);
        bool ending = session->ending;
        enum tr_stop_reason reason = session->reason;
        tr_lock_release(&system->session_lock);

        if (ending || dissolved)
                target->ops->stop(target, ending ? reason : TR_STOP_SESSION, system->limits.grace_ns);
}

void tr_session_detach(struct tr_target *target) {
        struct tr_system *system = target->system;
        struct tr_session *to = system->daemon_session;
        bool empty = false;

        tr_lock_acquire(&system->session_lock);
        struct tr_session *session = target->session != to ? session_remove_locked(target, &empty) : NULL;
        if (session)
                session_add_locked(to, target);
        bool ending = session && to->ending;
        enum tr_stop_reason reason = to->reason;
        tr_lock_release(&system->session_lock);

        if (ending)
                target->ops->stop(target, reason, system->limits.grace_ns);
        if (empty)
                session_empty(session);
        tr_session_unref(session);
}

/* inner sessions */

struct tr_session *tr_session_inside(struct tr_target *owner) {
        struct tr_system *system = owner->system;
        struct tr_session *made = tr_session_new(system), *session = system->daemon_session;
        if (!made)
                return NULL;
        made->owner = owner;
        tr_lock_acquire(&system->session_lock);
        if (owner->session) {
                if (!owner->inner)
                        owner->inner = tr_steal(made);
                session = owner->inner;
        }
        session->refs++;
        tr_lock_release(&system->session_lock);
        tr_session_unref(made);
        return session;
}

/* Moves one member of a dissolved session to where its owner is, and answers a reference to it; NULL where there is none left. */
static struct tr_target *session_move_one(struct tr_session *session) {
        bool empty;
        tr_lock_acquire(&session->system->session_lock);
        struct tr_target *target = tr_list_first(&session->members, struct tr_target, session_link);
        if (target) {
                tr_target_ref(target);
                session_remove_locked(target, &empty);
                session->refs--; /* the member's; its owner's is still there */
                session_add_locked(session_that_is_left(session), target);
        }
        tr_lock_release(&session->system->session_lock);
        return target;
}

/* The owner has ended: who is left is stopped. */
static void session_dissolve(struct tr_session *session) {
        struct tr_target *target;
        while ((target = session_move_one(session))) {
                target->ops->stop(target, TR_STOP_SESSION, session->system->limits.grace_ns);
                tr_target_unref(target);
        }
}

bool tr_session_is_supervised(struct tr_target *target) {
        tr_lock_acquire(&target->system->session_lock);
        bool supervised = target->session && target->session->owner;
        tr_lock_release(&target->system->session_lock);
        return supervised;
}

struct tr_session *tr_session_around(struct tr_target *target) {
        tr_lock_acquire(&target->system->session_lock);
        struct tr_session *session = target->session;
        while (session && session->owner)
                session = session->owner->session;
        if (session)
                session->refs++;
        tr_lock_release(&target->system->session_lock);
        return session;
}

void tr_session_leave(struct tr_target *target) {
        bool empty = false;
        tr_lock_acquire(&target->system->session_lock);
        while (target->inner && !target->inner->dissolved_into) {
                struct tr_session *inner = target->inner;
                inner->owner = NULL;
                inner->dissolved_into = target->session;
                target->session->refs++;
                tr_lock_release(&target->system->session_lock);
                session_dissolve(inner);
                tr_lock_acquire(&target->system->session_lock);
        }
        struct tr_session *session = session_remove_locked(target, &empty);
        tr_lock_release(&target->system->session_lock);

        if (empty)
                session_empty(session);
        tr_session_unref(session);
}

/* the end */

/* Moves one member from a list to `stopped` and answers a reference to it; NULL where the list is empty. */
static struct tr_target *session_next(struct tr_session *session, struct tr_list *from, struct tr_list *to) {
        tr_lock_acquire(&session->system->session_lock);
        struct tr_target *target = tr_list_first(from, struct tr_target, session_link);
        if (target) {
                tr_list_unlink(&target->session_link);
                tr_list_append(to, &target->session_link);
                tr_target_ref(target);
        }
        tr_lock_release(&session->system->session_lock);
        return target;
}

void tr_session_end(struct tr_session *session, enum tr_stop_reason reason, uint64_t grace_ns,
                    void (*on_empty)(void *userdata), void *userdata) {
        tr_lock_acquire(&session->system->session_lock);
        session->ending = true;
        session->reason = reason;
        session->on_empty = on_empty;
        session->userdata = userdata;
        bool empty = session->count == 0;
        tr_lock_release(&session->system->session_lock);

        if (empty) {
                session_empty(session);
                return;
        }
        struct tr_target *target;
        while ((target = session_next(session, &session->members, &session->stopped))) {
                target->ops->stop(target, reason, grace_ns);
                tr_target_unref(target);
        }
}

void tr_session_kill(struct tr_session *session) {
        /* Those that are killed go back to `members`: the session is ending, and nobody looks there for whom to stop. */
        struct tr_target *target;
        while ((target = session_next(session, &session->stopped, &session->members))) {
                target->ops->kill(target);
                tr_target_unref(target);
        }
}
