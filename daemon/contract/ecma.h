/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CONTRACT_ECMA_H
#define TR_CONTRACT_ECMA_H

#include <stddef.h>

#include "proto/value.h"

/* Writes the pattern of ECMA-262 as the one of PCRE2 that means the same. NULL, or what in it is not ECMA-262's: "\\A
 * is no escape". Want of memory is in the writer. */
const char *tr_ecma_translate(struct tr_writer *writer, const char *text, size_t len);

#endif
