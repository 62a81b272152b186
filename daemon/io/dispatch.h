/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_DISPATCH_H
#define TR_IO_DISPATCH_H

#include "proto/frame.h"

struct tr_connection;

/* Handles one whole frame of a connection. Loop thread. */
void tr_dispatch(struct tr_connection *connection, const struct tr_frame *frame);
/* Answers what the scanner refused; `data` is where the frame begins. */
void tr_dispatch_refusal(struct tr_connection *connection, const uint8_t *data, const struct tr_frame *frame,
                         const struct tr_refusal *refusal);
/* Answers, where an id was read, what is no frame. */
void tr_dispatch_bad(struct tr_connection *connection, const struct tr_refusal *refusal);

#endif
