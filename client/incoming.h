/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CLIENT_INCOMING_H
#define TR_CLIENT_INCOMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/troupe.h"
#include "proto/frame.h"

/*
 * What comes from the daemon without being an answer: notifications and requests.
 */
struct tr_incoming;

/* What came while a call waited, and no callback might run. Zeroed is empty. */
struct tr_incoming_queue {
        struct tr_incoming *first;
        struct tr_incoming *last;
        size_t bytes;
};

/* Both answer 0, or -ENOMEM with nothing done: the frame is still to be dealt with. `params` are the frame's, in memory
 * that may be written to. */

/* Runs its callback now. */
__attribute__((warn_unused_result)) int tr_incoming_run(struct troupe *troupe, const struct tr_frame *frame,
                                                        uint8_t *params);
/* Keeps a copy for later; also -EOVERFLOW where too much is kept. */
__attribute__((warn_unused_result)) int tr_incoming_keep(struct troupe *troupe, const struct tr_frame *frame);

/* Holds a frame back that belongs to an agreement which the daemon has not answered yet (standing.h), until it has. 1: held;
 * 0: there is none of that, or too much is held for it already; or -ENOMEM. */
__attribute__((warn_unused_result)) int tr_incoming_hold(struct troupe *troupe, const struct tr_frame *frame);
/* Keeps what was held back, as if it had come now. */
void tr_incoming_release(struct troupe *troupe, struct tr_incoming_queue *held);

/* Whether no more may be kept. */
bool tr_incoming_is_full(const struct tr_incoming_queue *queue);
/* When the oldest came (tr_connection_order), UINT64_MAX where there is none. */
uint64_t tr_incoming_order(const struct tr_incoming_queue *queue);
/* Runs the oldest. 0 or -ENOMEM with nothing done. */
__attribute__((warn_unused_result)) int tr_incoming_run_kept(struct troupe *troupe);
/* Nobody waits for answers to what was asked: forgets it, and keeps what was told. */
void tr_incoming_lose_requests(struct tr_incoming_queue *queue);
void tr_incoming_deinit(struct tr_incoming_queue *queue);

#endif
