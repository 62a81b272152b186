/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CLIENT_PARAMS_H
#define TR_CLIENT_PARAMS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/value.h"

/*
 * Packing by a format; troupe.h ("Arguments") says which. All append to the writer and leave behind whatever they had
 * written when they fail: who calls takes it back.
 *
 * 0, -EINVAL (the format, or what it was given), -ERANGE (an integer in JSON text beyond 64 bits), -ENOMEM.
 */

/* The values, one after another; answers in *ret_count how many. */
__attribute__((warn_unused_result)) int tr_params_write(struct tr_writer *writer, const char *format, va_list args,
                                                        uint32_t *ret_count);
/* The same for the variable arguments of the function that this stands in. */
#define TR_PARAMS_WITH_ARGS(r, format, write) \
        do {                                  \
                va_list args;                 \
                va_start(args, format);       \
                (r) = (write);                \
                va_end(args);                 \
        } while (0)

/* One array of them. */
__attribute__((warn_unused_result)) int tr_params_write_list(struct tr_writer *writer, const char *format,
                                                             va_list args);
/* One value; nil where the format makes none, -EINVAL where it makes several. */
__attribute__((warn_unused_result)) int tr_params_write_one(struct tr_writer *writer, const char *format, va_list args);
/* One whole MessagePack value, after a look at its form. */
__attribute__((warn_unused_result)) int tr_params_write_packed(struct tr_writer *writer, const void *data, size_t size);
/* A handle where the text is one, else the text: a published name. */
__attribute__((warn_unused_result)) int tr_params_write_target(struct tr_writer *writer, const char *target);

#endif
