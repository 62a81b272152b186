/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CONTRACT_JSON_H
#define TR_CONTRACT_JSON_H

#include <jansson.h>

#include "proto/limits.h"
#include "proto/value.h"

/* JSON as the MessagePack that a peer would send: the arguments of a configured actor, the values in a schema. */

enum {
        TR_JSON_TOO_DEEP = 1, /* beyond TR_NESTING_MAX levels; what was written is of no use */
};

/* Appends the value. 0 or TR_JSON_TOO_DEEP; want of memory is in the writer. */
__attribute__((warn_unused_result)) int tr_json_pack(struct tr_writer *writer, json_t *value);

#endif
