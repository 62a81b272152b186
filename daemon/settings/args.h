/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SETTINGS_ARGS_H
#define TR_SETTINGS_ARGS_H

#include <jansson.h>

#include "proto/limits.h"
#include "proto/value.h"

/* The arguments of a configured actor: JSON as the MessagePack that a peer would send. */

enum {
        TR_ARGS_TOO_DEEP = 1, /* beyond TR_NESTING_MAX levels; what was written is of no use */
};

/* Appends the value. 0 or TR_ARGS_TOO_DEEP; want of memory is in the writer. */
__attribute__((warn_unused_result)) int tr_args_write(struct tr_writer *writer, json_t *value);

#endif
