/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pending requests of a connection: how one becomes pending, and how the connection itself gives one up, by a cancel
 * or a deadline. (The deadline of a call is its own: core/invocation.h.)
 *
 * Giving up settles the message, so it competes with the actor: where the handler has not been entered it never is,
 * and where the answer is on its way it wins. One that started an actor (spawn) kills it: nobody would ever have its
 * handle.
 */
#include "config.h"

#include "daemon/base/clock.h"
#include "daemon/core/invocation.h"
#include "daemon/core/registry.h"
#include "daemon/core/system.h"
#include "daemon/core/target.h"
#include "daemon/io/connection.h"
#include "daemon/io/server_internal.h"

/* References to a connection that are taken at once. */
#define REFS_AHEAD 64

/* From now on a deadline that soon is noticed. The timer only ever moves to an earlier time; where what it was set
 * for is answered before, it fires once for nothing. */
static struct tr_failure *connection_arm(struct tr_connection *connection, uint64_t deadline_ns) {
        if (deadline_ns >= connection->armed_ns)
                return NULL;
        if (tr_system_set_timer(connection->server->system, &connection->deadline_timer, deadline_ns) < 0)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for a deadline");
        connection->armed_ns = deadline_ns;
        return NULL;
}

/* A reference for one more request. They are taken ahead: each change of the count fetches its cache line from the CPU of the
 * actor that changed it last. */
static struct tr_connection *connection_ref_for_request(struct tr_connection *connection) {
        if (!connection->refs_ahead) {
                /* relaxed: as tr_connection_ref() */
                atomic_fetch_add_explicit(&connection->refs, REFS_AHEAD, memory_order_relaxed);
                connection->refs_ahead = REFS_AHEAD;
        }
        connection->refs_ahead--;
        return connection;
}

struct tr_failure *tr_connection_sign(struct tr_connection *connection, struct tr_message *message, uint32_t id,
                                      uint64_t timeout_ns) {
        message->asker = &connection_ref_for_request(connection)->asker;
        message->lone = connection->lone;
        message->ask.id = id;
        message->form = connection->form.values;
        message->errors = connection->form.errors;
        message->ask.deadline.deadline_ns = timeout_ns == TR_NEVER ? TR_NEVER : tr_clock_deadline_ns(timeout_ns);
        return connection_arm(connection, message->ask.deadline.deadline_ns);
}

static struct tr_failure *duplicate_failure(uint32_t id) {
        return tr_failure_new(TR_CODE_BAD_REQUEST, "a request with the id %u is unanswered", id);
}

struct tr_failure *tr_connection_expect_locked(struct tr_connection *connection, struct tr_message *message) {
        uint32_t max = connection->server->limits.requests;
        connection->asked = true;
        switch (tr_pending_add(&connection->pending, message, message->ask.deadline.deadline_ns, max)) {
        case 0:
                return NULL;
        case TR_PENDING_DUPLICATE:
                return duplicate_failure((uint32_t)message->ask.id);
        case TR_PENDING_FULL:
                return tr_failure_new(TR_CODE_BUSY, "%u requests are unanswered, and limits.requests allows no more",
                                      max);
        default:
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for one more request");
        }
}

struct tr_failure *tr_connection_expect(struct tr_connection *connection, struct tr_message *message) {
        tr_lock_acquire(&connection->lock);
        struct tr_failure *failure = tr_connection_expect_locked(connection, message);
        tr_lock_release(&connection->lock);
        return failure;
}

void tr_connection_forget(struct tr_connection *connection, struct tr_message *message) {
        tr_lock_acquire(&connection->lock);
        tr_pending_remove(&connection->pending, message);
        tr_lock_release(&connection->lock);
}

struct tr_failure *tr_connection_check_id(struct tr_connection *connection, uint32_t id) {
        /* relaxed, and without the lock, under which an answer may be on its way into the socket: only this thread adds any */
        if (atomic_load_explicit(&connection->pending.count, memory_order_relaxed) == 0)
                return NULL;
        tr_lock_acquire(&connection->lock);
        bool is_pending = tr_pending_find(&connection->pending, id);
        tr_lock_release(&connection->lock);
        return is_pending ? duplicate_failure(id) : NULL;
}

/* Answers a pending request with a failure, unless somebody else has settled it and is about to answer. */
static bool connection_give_up(struct tr_connection *connection, struct tr_message *message, enum tr_code code,
                               const char *sentence) {
        bool begun;
        if (!tr_message_settle(message, &begun))
                return false;
        /* Its end may take a while; whoever is told now may start another one under the name. */
        if (message->spawned)
                tr_registry_withdraw(&connection->server->system->registry, message->spawned);
        struct tr_failure *failure = tr_failure_new(code, "%s", sentence);
        tr_connection_reject(connection, message, failure, begun ? TR_RAN_MAYBE : TR_RAN_NO);
        tr_failure_unref(failure);
        tr_invocation_given_up(message);
        /* Last: this answer comes before those of whoever waits for its end. */
        if (message->spawned)
                message->spawned->ops->kill(message->spawned);
        return true;
}

bool tr_connection_cancel(struct tr_connection *connection, uint32_t id) {
        tr_lock_acquire(&connection->lock);
        struct tr_message *message = tr_pending_find(&connection->pending, id);
        if (message)
                tr_message_ref(message);
        tr_lock_release(&connection->lock);
        if (!message)
                return false;

        bool cancelled = connection_give_up(connection, message, TR_CODE_CANCELLED, "the caller took the request back");
        tr_message_unref(message);
        return cancelled;
}

static struct tr_message *connection_take_due(struct tr_connection *connection, uint64_t now_ns) {
        tr_lock_acquire(&connection->lock);
        struct tr_message *message = tr_pending_take_due(&connection->pending, now_ns);
        if (message)
                tr_message_ref(message);
        connection->armed_ns = tr_timers_next_ns(&connection->pending.deadlines);
        tr_lock_release(&connection->lock);
        return message;
}

void tr_connection_on_deadline(struct tr_timer *timer) {
        struct tr_connection *connection = tr_container_of(timer, struct tr_connection, deadline_timer);
        struct tr_message *message;
        uint64_t now_ns = tr_clock_ns();

        while ((message = connection_take_due(connection, now_ns))) {
                connection_give_up(connection, message, TR_CODE_TIMEOUT, "the deadline passed before it was answered");
                tr_message_unref(message);
        }
        uint64_t next_ns = connection->armed_ns;
        connection->armed_ns = TR_NEVER;
        struct tr_failure *failure = connection_arm(connection, next_ns);
        if (failure) /* deadlines that nobody would notice */
                tr_connection_doom(connection, "out of memory for its deadlines");
        tr_failure_unref(failure);
        tr_connection_push(connection);
        tr_connection_attend(connection);
}
