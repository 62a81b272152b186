/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_OUTPUT_H
#define TR_IO_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/value.h"

/*
 * What a connection has to say and has not said yet: one run of bytes, written at its end and sent from its front.
 * Guarded by its connection's lock.
 */
struct tr_output {
        struct tr_writer writer; /* what is appended to */
        size_t sent;             /* bytes of it that are gone */
        uint64_t sent_total;     /* since the beginning: whether the peer reads at all */
        uint64_t called_to;      /* of all bytes since the beginning: where the last call of the client ended (callee.c) */
        size_t max_bytes;        /* waiting; more is the end of the connection */
        bool blocked;            /* the socket was full: the loop waits for room, and nobody else sends */
        bool broken;             /* nobody reads it any more: everything is thrown away */
};

enum tr_output_state {
        TR_OUTPUT_EMPTY,
        TR_OUTPUT_BLOCKED,
        TR_OUTPUT_BROKEN,
};

void tr_output_deinit(struct tr_output *output);

static inline size_t tr_output_waiting(const struct tr_output *output) {
        return output->writer.len - output->sent;
}

/* Where the writer stands before something is appended, for tr_output_end(). */
static inline size_t tr_output_begin(const struct tr_output *output) {
        return output->writer.len;
}

/*
 * Judges what was appended since tr_output_begin(). 0; -ENOMEM, and it is taken back; -ENOBUFS, and the output is
 * broken, since the peer has left more than max_bytes unread.
 */
__attribute__((warn_unused_result)) int tr_output_end(struct tr_output *output, size_t begin);

/* Sends what the socket takes without waiting. */
enum tr_output_state tr_output_send(struct tr_output *output, int fd);

/* Throws away what is waiting, and all that will be appended. */
void tr_output_break(struct tr_output *output);

#endif
