/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CONTRACT_POINTER_H
#define TR_CONTRACT_POINTER_H

#include <stddef.h>
#include <stdint.h>

/*
 * Where in a document something is: a chain of steps from the inside out. NULL is the document itself. Whoever walks
 * the document keeps the steps, on the stack or beside what they lead to; they borrow the keys.
 */
struct tr_step {
        const struct tr_step *parent;
        const char *key; /* the member of an object; NULL: the element of an array */
        size_t key_len;
        size_t index;
};

/* As a JSON Pointer (RFC 6901), the caller's to free; NULL where memory is short. It is text that may be shown: what is
 * no UTF-8, and control characters, are "?" in it, and what is longer than TR_POINTER_MAX ends in "...". */
#define TR_POINTER_MAX 1024
char *tr_pointer_text(const struct tr_step *step);

/* Copies as much of a text as there is room for, in whole characters, and shows it as above. Answers the length;
 * buffer[length] is a NUL. */
size_t tr_pointer_show(char *buffer, size_t size, const char *text, size_t len);

#endif
