/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/schema_fixture.h"

#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/notation.h"

json_t *schema_json(const char *text) {
        char *json = strdup(text);
        json_error_t error;
        json_t *parsed;

        ck_assert_ptr_nonnull(json);
        for (char *at = json; *at; at++)
                if (*at == '\'')
                        *at = '"';
        parsed = json_loads(json, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
        ck_assert_msg(parsed, "%s: %s", json, error.text);
        free(json);
        return parsed;
}

static char *join(const char *path, const char *reason) {
        char *text;

        ck_assert_int_ge(asprintf(&text, "%s %s", path, reason), 0);
        return text;
}

static int compile(const char *text, struct tr_schema **ret_schema, struct tr_schema_problem *ret_problem) {
        json_t *json = schema_json(text);
        int r = tr_schema_compile(json, ret_schema, ret_problem);

        json_decref(json);
        return r;
}

struct tr_schema *schema_of(const char *text) {
        struct tr_schema_problem problem = { 0 };
        struct tr_schema *schema = NULL;
        int r = compile(text, &schema, &problem);

        ck_assert_msg(r == 0, "%s: %s %s", text, problem.path ? problem.path : "",
                      problem.reason ? problem.reason : "");
        return schema;
}

char *schema_problem(const char *text) {
        struct tr_schema_problem problem = { 0 };
        struct tr_schema *schema = NULL;
        int r = compile(text, &schema, &problem);
        char *said = NULL;

        ck_assert_int_eq(r, schema ? 0 : TR_SCHEMA_WRONG);
        if (!schema)
                said = join(problem.path, problem.reason);
        tr_schema_problem_deinit(&problem);
        tr_schema_unref(schema);
        return said;
}

char *schema_violation_of(const struct tr_schema *schema, struct tr_writer *value) {
        struct tr_schema_violation violation = { 0 };
        int r = tr_schema_check(schema, value->data, value->len, &violation);
        char *said = NULL;

        ck_assert_int_eq(r, violation.reason ? TR_SCHEMA_VIOLATED : 0);
        if (r)
                said = join(violation.path, violation.reason);
        tr_schema_violation_deinit(&violation);
        return said;
}

char *schema_violation(const struct tr_schema *schema, const char *value) {
        struct tr_writer writer = TR_WRITER_INIT;
        char *said;

        notation_write(&writer, value);
        said = schema_violation_of(schema, &writer);
        tr_writer_deinit(&writer);
        return said;
}
