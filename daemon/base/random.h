/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_BASE_RANDOM_H
#define TR_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"

/* Unpredictable bytes from the kernel. 0 or a negative errno. Any thread. */
TR_MUST_CHECK int tr_random_bytes(void *ret_bytes, size_t len);

#endif
