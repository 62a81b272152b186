/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CONTRACT_CANONICAL_H
#define TR_CONTRACT_CANONICAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "proto/value.h"

/*
 * The one encoding that equal values share, so that equality is that of bytes: 1 and 1.0 are the same, the members of
 * an object have an order, and keys are text. What JSON does not have (bin, extensions) equals what is the same
 * bytes.
 */

struct tr_slice {
        const uint8_t *data;
        size_t len;
        size_t index; /* where it stood before it was sorted */
};

enum {
        TR_CANONICAL_STOPPED = 1, /* more steps than there may be */
};

/* Appends one value in this form, and takes the steps off *steps. 0, TR_CANONICAL_STOPPED or -ENOMEM; what was written
 * before a failure stays. The value is nested as deep as the scanner lets through. */
TR_MUST_CHECK int tr_canonical_write(struct tr_writer *writer, struct tr_reader *reader, uint64_t *steps);

/* Order of bytes; the longer one is behind where it begins with the other. */
int tr_slice_compare(const struct tr_slice *a, const struct tr_slice *b);
/* Room for some, at least one, once the steps of sorting them are paid. 0, TR_CANONICAL_STOPPED or -ENOMEM; the
 * caller frees. */
TR_MUST_CHECK int tr_slices_new(size_t count, uint64_t *steps, struct tr_slice **ret_slices);
/* Sorts by tr_slice_compare(), and equal ones by index. 0 or TR_CANONICAL_STOPPED. */
TR_MUST_CHECK int tr_slices_sort(struct tr_slice *slices, size_t count, uint64_t *steps);

/* The text of a map's key, as the plain form has it: what JSON would call the member. The buffer is a number's. */
struct tr_key {
        const char *data;
        size_t len;
        char buffer[TR_FLOAT_TEXT_MAX];
};
void tr_key_read(struct tr_key *key, const struct tr_token *token);

#endif
