/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CONTRACT_UNPACK_H
#define TR_CONTRACT_UNPACK_H

#include <jansson.h>
#include <stddef.h>

#include "daemon/base/error.h"

/* MessagePack as the JSON that it stands for: what a peer sends in place of what could be configured. */

enum {
        TR_UNPACK_NO_JSON = 1,
};

/* A value of few bytes takes far more of them as JSON: so many values at most. */
#define TR_UNPACK_VALUES_MAX 65536

/*
 * Reads one value that the scanner has passed, typed. 0 with a new *ret_json; TR_UNPACK_NO_JSON with *ret_path, which the
 * caller frees, a JSON Pointer to what cannot be JSON, and *ret_reason, static, what follows on it; or -ENOMEM. Bin is text
 * where it is UTF-8, as stock clients send it.
 */
TR_MUST_CHECK int tr_json_unpack(const void *value, size_t bytes, json_t **ret_json, char **ret_path,
                                 const char **ret_reason);

#endif
