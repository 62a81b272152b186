/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_CALLEE_H
#define TR_IO_CALLEE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/list.h"
#include "daemon/core/target.h"
#include "daemon/io/chosen.h"
#include "daemon/io/connection.h"
#include "proto/frame.h"

/*
 * A connection as a target: what is sent to it goes out as a notification, and what it is asked as a request, [handler, args...]
 * being what the client's method is called with. A connection may have several, each with a method of its own: one where it listens
 * (listening.h), and more.
 *
 * Whoever posts writes to the connection's output and sends, as whoever answers does. Where the socket is full, a message waits
 * (outgoing.h), queued, until the loop has sent what is before it: it can still be cancelled then and never goes out. When it is
 * written to the output it begins. So much may wait as the connection's limits allow, the asks that went out and are not answered
 * counted; whatever is more is refused, and nobody ever waits.
 *
 * Lock order: the target's, which is held only to get at the connection, and then the connection's; never both. Messages are dropped
 * when the connection's lock is released, since one may hold the last reference of another connection.
 */
struct tr_callee {
        struct tr_target target;
        /* A reference, until it ends. Guarded by the target's lock. */
        struct tr_connection *connection;
        /* What the client's error means, for whoever asked: a new reference. Loop thread. */
        struct tr_failure *(*failure)(struct tr_callee *callee, const struct tr_message *message, const struct tr_span *error);

        /* Guarded by the connection's lock. */
        struct tr_chosen chosen;
        uint32_t waiting_count; /* of what waits for room in the socket */
        uint64_t waiting_bytes;
        bool congested; /* an ask was refused for want of room, and nobody has been told that there is some */
};

/* Fills in one of a connection, which is not registered: 0 or a negative errno. Loop thread. */
TR_MUST_CHECK int tr_callee_init(struct tr_callee *callee, const struct tr_target_ops *ops, struct tr_connection *connection,
                                 const char *label);
/* For ops->free. */
void tr_callee_deinit(struct tr_callee *callee);

static inline struct tr_callee *tr_callee_of(struct tr_target *target) {
        return tr_container_of(target, struct tr_callee, target);
}

/* A new reference, or NULL where it has ended. Any thread. */
struct tr_connection *tr_callee_connection(struct tr_callee *callee);
/* For ops->post. */
enum tr_post tr_callee_post(struct tr_target *target, struct tr_list *messages);
/* Nothing can be posted to it any more; what was is taken from its connection, whose lock is not held: asks that nobody has answered, and
 * whatever waits. Answers the connection, whose reference is the caller's; NULL where this was
 * done before. Any thread. */
struct tr_connection *tr_callee_leave(struct tr_callee *callee, struct tr_list *ret_asks, struct tr_list *ret_waiting);
/* What waits never goes out: whatever was only sent is told to `refused`. */
void tr_callee_drop_waiting(struct tr_callee *callee, struct tr_list *waiting);
/* `stopped`: the connection does not answer them any more. */
void tr_callee_reject_all(struct tr_list *asks);
void tr_callee_drop(struct tr_list *messages);

/* All that follows is for the loop thread. */

/* callee_feed.c: the socket took all there was: what waits follows. Under the connection's lock; the messages in the list are to be
 * dropped after it (tr_callee_drop). */
void tr_callee_feed_locked(struct tr_connection *connection, struct tr_list *ret_done) TR_REQUIRES(connection->lock);

/* callee_answer.c: a response came. */
void tr_callee_answered(struct tr_connection *connection, const struct tr_frame *frame);
/* One came that cannot be accepted, and why. */
void tr_callee_answer_refused(struct tr_connection *connection, uint32_t id, struct tr_failure *failure);
/* An error as a fault with its text: it is one, or the first text of an array, or a map's `message`. */
struct tr_failure *tr_callee_fault(struct tr_callee *callee, const struct tr_message *message, const struct tr_span *error);
/* Nothing more is received: what the client was asked is not answered any more, and what that was kept in is freed. */
void tr_callee_deafen(struct tr_connection *connection);

/* Between the files that make it up. */

/* What follows at once when the socket has room again, and what is sent before more is written. */
#define TR_CALLEE_FEED_BYTES ((size_t)64 << 10)
/* Appends the frame of a message to the output, where it begins. 0, -ENOMEM, or 1: it was settled before. */
TR_MUST_CHECK int tr_callee_write_locked(struct tr_callee *callee, struct tr_connection *connection, struct tr_message *message,
                                         uint32_t id, const struct tr_span *args) TR_REQUIRES(connection->lock);

#endif
