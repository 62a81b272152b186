/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_CHOSEN_H
#define TR_IO_CHOSEN_H

#include "daemon/io/option.h"
#include "proto/value.h"

/*
 * A method that a client chose to be called by, `{method?, params?}`: the daemon calls no others. What it has to say is
 * one value, an array: it is the params of the call or, where params were chosen, the last of them:
 *
 *      [method, value]         or      [method, [params..., value]]
 */

/* What the client said of it, in the piece that was read. */
struct tr_chosen_options {
        struct tr_text method;
        struct tr_items params;
};

/* The entries of a table of options, for a structure that has one. */
/* clang-format off */
#define TR_CHOSEN_OPTIONS(type, member) \
        { "method", TR_OPTION_TEXT, offsetof(type, member.method) }, \
        { "params", TR_OPTION_ARRAY, offsetof(type, member.params) }
/* clang-format on */

/* Bytes of the params at most: they are said again with each value. */
#define TR_CHOSEN_PARAMS_MAX ((size_t)64 << 10)

struct tr_chosen {
        struct tr_writer head; /* what stands before the value */
};

/* `method` is who is called where the client chose none. NULL, or bad-request, no-memory: nothing to deinit then. */
struct tr_failure *tr_chosen_init(struct tr_chosen *chosen, const struct tr_chosen_options *options,
                                  const char *method);
void tr_chosen_deinit(struct tr_chosen *chosen);

/* Writes what stands before the value, in a frame that the caller has begun (`[2,` or `[0, id,`) and goes on with. */
void tr_chosen_write(const struct tr_chosen *chosen, struct tr_writer *writer);

#endif
