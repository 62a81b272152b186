/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_TESTS_UNIT_VECTORS_H
#define TR_TESTS_UNIT_VECTORS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/value.h"

/*
 * The files of proto/vectors/ for tests in C; the README there describes them. A
 * file that is not as described ends the program with a sentence: the tests are
 * not about that.
 */

/* An array of cases; the caller gives it back with json_decref(). */
json_t *vectors_load(const char *file);

/* A member that must be there. Borrowed. */
json_t *vectors_get(json_t *object, const char *member);
const char *vectors_text(json_t *object, const char *member);

/* The bytes of a member "hex" or the like, from malloc(). */
uint8_t *vectors_bytes(const json_t *hex, size_t *ret_len);
/* The bytes of "digits digits-digits". */
uint8_t *vectors_hex(const char *digits, size_t *ret_len);

/* Appends the value that JSON stands for, in its shortest encoding. */
void vectors_encode(struct tr_writer *writer, const json_t *value);

/* Appends one value of the reader in its shortest encoding, extension payloads as they are. 0 or TR_READ_*. */
int vectors_recode(struct tr_writer *writer, struct tr_reader *reader);

#endif
