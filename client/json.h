/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CLIENT_JSON_H
#define TR_CLIENT_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "client/troupe.h"
#include "proto/value.h"

/*
 * JSON text to MessagePack and back. {"$bin": BASE64}, {"$float": "nan"} and {"$handle": "actor:..."} stand for what
 * JSON cannot hold, both ways.
 */

/* Appends the one value that the text is. 0, -EINVAL (it is no JSON, has a key twice, or a $-object that is none),
 * -ERANGE (a number beyond 64 bits), -ENOMEM. What was written before a failure stays: the caller takes it back. */
__attribute__((warn_unused_result)) int tr_json_read(struct tr_writer *writer, const char *text, size_t size);

/* What is wrong with the text, as a sentence without an end: false where nothing is. */
#define TR_JSON_PROBLEM_MAX 256
bool tr_json_problem(const char *text, size_t size, char problem[static TR_JSON_PROBLEM_MAX]);

/* Appends the text of one value, without a NUL. 0, -EBADMSG, -ENOMEM. The same about failures. */
__attribute__((warn_unused_result)) int tr_json_write(struct tr_writer *text, const void *data, size_t size);

/* The shortest text of a finite double that reads back the same, with a fraction or an exponent. Answers its length. */
#define TR_JSON_FLOAT_MAX 40
size_t tr_json_float(double value, char text[static TR_JSON_FLOAT_MAX]);

#endif
