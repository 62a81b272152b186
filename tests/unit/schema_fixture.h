/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SCHEMA_FIXTURE_H
#define TESTS_SCHEMA_FIXTURE_H

#include <stddef.h>

#include "daemon/contract/schema.h"
#include "proto/value.h"

/* JSON with ' for ", compiled; the schema has to be right. */
struct tr_schema *schema_of(const char *text);
/* The JSON itself; the caller's to free. */
struct json_t *schema_json(const char *text);

/* What comes of a value in notation.h's form: NULL where it fits, or "PATH REASON", the caller's to free. */
char *schema_violation(const struct tr_schema *schema, const char *value);
/* The same of MessagePack, which may be changed. */
char *schema_violation_of(const struct tr_schema *schema, struct tr_writer *value);
/* "PATH REASON" of what is wrong with a schema; NULL where nothing is. */
char *schema_problem(const char *text);

#endif
