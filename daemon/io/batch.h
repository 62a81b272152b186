/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_BATCH_H
#define TR_IO_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/list.h"
#include "proto/frame.h"
#include "proto/handle.h"
#include "proto/limits.h"

struct tr_connection;
struct tr_message;
struct tr_target;

/* Messages handed over with one lock at most: some, so that the actor begins while the loop is still reading. */
#define TR_BATCH_MAX 64
/* Bytes of an encoded target that are compared: a name or a handle's text with its header. */
#define TR_BATCH_TARGET_MAX (TR_NAME_MAX + 2)

/* One message of a batch. */
struct tr_batch_entry {
        uint32_t id;
        bool acknowledge; /* answered nil: a send when it is in the mailbox, an ask with a reply when it is pending */
        bool refused;
};

/*
 * Consecutive messages of one connection for one target, on their way to its mailbox. They are handed over together:
 * the asks among them become pending under one lock, then all are posted under one. Whatever else the connection does
 * comes after that (tr_batch_flush), so the order in which it sent is kept. Loop thread.
 */
struct tr_batch {
        struct tr_connection *connection;
        struct tr_target *target;                  /* strong; NULL: the batch is empty */
        uint8_t target_bytes[TR_BATCH_TARGET_MAX]; /* the target as it was written in the request */
        size_t target_len;
        struct tr_list messages;
        struct tr_batch_entry entries[TR_BATCH_MAX]; /* one for each message, in the same order */
        uint32_t count;
        bool has_asks;
        bool has_acknowledges;
};

void tr_batch_init(struct tr_batch *batch);

/* The batch's target, borrowed, where a request of that connection names it with the same bytes; else NULL. */
struct tr_target *tr_batch_target(const struct tr_batch *batch, const struct tr_connection *connection,
                                  const struct tr_span *written);
/* Adds a message: an ask, signed by the connection, to be answered under `id` or, with a reply, acknowledged or not; or
 * a send, to be acknowledged or not. A batch for another target is handed over first. */
void tr_batch_add(struct tr_batch *batch, struct tr_connection *connection, struct tr_target *target,
                  const struct tr_span *written, struct tr_message *take_message, bool acknowledge, uint32_t id);
/* Hands over what is in it. */
void tr_batch_flush(struct tr_batch *batch);

#endif
