/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_NO_PLAIN_H
#define TR_IO_NO_PLAIN_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/failure.h"

/*
 * Why values cannot be given to whom takes them plain: tr_write_plain() answered TR_PLAIN_SAME_KEY, with the reader
 * `offset` bytes into them. `not-sendable`, with the place.
 */

/* One of `count` arguments. */
struct tr_failure *tr_no_plain_args(const void *args, size_t bytes, uint32_t count, size_t offset);
/* An answer: what its value is in has no name. */
struct tr_failure *tr_no_plain_answer(const void *value, size_t bytes, size_t offset);

#endif
