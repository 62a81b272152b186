/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_LINES_H
#define TR_COMMAND_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Standard input, line by line, read in large pieces and only when somebody says so. The last line needs no newline.
 * Zeroed is ready.
 */
struct tr_lines {
        char *data;
        size_t begin;    /* of the present line */
        size_t searched; /* no newline before this */
        size_t end;
        size_t capacity;
        uint64_t dropped; /* bytes of all lines that are behind, with their newlines */
        bool is_over; /* nothing more to read */
};

/* Reads once. 0 or a negative errno; -EFBIG where a line is longer than any frame could be. */
__attribute__((warn_unused_result)) int tr_lines_read(struct tr_lines *lines, int fd);
/* The present line, without its newline, borrowed until the next tr_lines_read(). False where there is no whole one. */
bool tr_lines_peek(struct tr_lines *lines, const char **ret_line, size_t *ret_len);
/* Goes on to the next, after a peek. */
void tr_lines_drop(struct tr_lines *lines, size_t len);
void tr_lines_deinit(struct tr_lines *lines);

#endif
