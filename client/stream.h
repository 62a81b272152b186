/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CLIENT_STREAM_H
#define TR_CLIENT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/value.h"

/*
 * The bytes on their way to and from the socket. Both ends work on a socket of either mode: each call says for itself
 * whether it may wait, so that a program that shares the descriptor with an event loop never has its flags changed
 * under it.
 */

/* What the peer has not taken yet. Frames are written straight into it. Zeroed is empty. */
struct tr_output {
        struct tr_writer bytes;
        size_t sent;   /* of them, from the beginning */
        uint64_t gone; /* bytes that were here before these */
};

static inline size_t tr_output_waiting(const struct tr_output *output) {
        return output->bytes.len - output->sent;
}

/* Of the output's end, and of what is written of it. */
static inline uint64_t tr_output_position(const struct tr_output *output) {
        return output->gone + output->bytes.len;
}
static inline uint64_t tr_output_written(const struct tr_output *output) {
        return output->gone + output->sent;
}

/* Writes what the socket takes now. 0, also where something is left; or a negative errno, and the connection is no
 * good. */
__attribute__((warn_unused_result)) int tr_output_flush(struct tr_output *output, int fd);
/* Forgets what is not written. */
void tr_output_drop(struct tr_output *output);
void tr_output_deinit(struct tr_output *output);

/* What was read and is not dealt with: from `begin` to `end`. Zeroed is empty. */
struct tr_input {
        uint8_t *data;
        size_t begin;
        size_t end;
        size_t capacity;
};

enum {
        TR_INPUT_NOTHING = 1, /* nothing is there now (never where it may wait) */
        TR_INPUT_END,         /* nothing will come any more */
        TR_INPUT_FULL,        /* done, and there may be more: all the room that there was is used */
};

/* Reads once. 0, TR_INPUT_*, or a negative errno. Moves the bytes that are there: spans into them end here. */
__attribute__((warn_unused_result)) int tr_input_fill(struct tr_input *input, int fd, bool wait);
/* These bytes at the beginning are dealt with. */
void tr_input_drop(struct tr_input *input, size_t bytes);
void tr_input_deinit(struct tr_input *input);

#endif
