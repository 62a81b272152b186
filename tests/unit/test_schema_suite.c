/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The official test suite of JSON Schema, draft 2020-12, every file of it: it is read where it lies beside the tree
 * (../shared/data), and without it there is nothing to test. What we do not support is refused when it is compiled,
 * and the tables below say which groups those are and where they are refused. What is in no table has to come out as
 * the suite has it.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/contract/json.h"
#include "daemon/contract/schema.h"
#include "tests/unit/suite.h"

#define SUITE "../shared/data/json-schema-test-suite/tests/draft2020-12"
#define SKIPPED 77

/* Groups that lead out of the schema that they are in, and such that are of another dialect. */
static const struct refused {
        const char *file;
        const char *group; /* NULL: all of the file */
        const char *path;
        const char *reason; /* what it begins with */
} refused[] = {
        { "refRemote.json", NULL, NULL, "leads to \"" },
        { "vocabulary.json", NULL, "/$schema", "is not https://json-schema.org/draft/2020-12/schema" },
        { "defs.json", NULL, "/$ref", "leads to \"https://json-schema.org/draft/2020-12/schema\"" },
        { "ref.json", "remote ref, containing refs itself", "/$ref",
          "leads to \"https://json-schema.org/draft/2020-12/schema\"" },
        { "dynamicRef.json", "strict-tree schema, guards against misspelled properties", "/$ref",
          "leads to \"tree.json\"" },
        { "dynamicRef.json", "tests for implementation dynamic anchor and reference link", "/$ref",
          "leads to \"extendible-dynamic-ref.json\"" },
        { "dynamicRef.json", "$ref and $dynamicAnchor are independent of order - $defs first", "/allOf/0/$ref",
          "leads to \"extendible-dynamic-ref.json\"" },
        { "dynamicRef.json", "$ref and $dynamicAnchor are independent of order - $ref first", "/allOf/1/$ref",
          "leads to \"extendible-dynamic-ref.json\"" },
        { "dynamicRef.json", "$ref to $dynamicRef finds detached $dynamicAnchor", "/$ref",
          "leads to \"http://localhost:1234/draft2020-12/detached-dynamicref.json#/$defs/foo\"" },
};

/* Where a value of Troupe's is more than one of JSON's: an empty array is an object where one is asked for. */
static const struct other {
        const char *file;
        const char *group;
        const char *test;
        bool valid;
} others[] = {
        { "type.json", "object type matches objects", "an array is not an object", true },
};

static const char *folder;
static unsigned cases, groups_refused, others_met;

static bool is_refused(const char *file, const char *group, const struct refused **ret_entry) {
        for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
                if (strcmp(refused[i].file, file) == 0 && (!refused[i].group || strcmp(refused[i].group, group) == 0)) {
                        *ret_entry = &refused[i];
                        return true;
                }
        return false;
}

static bool outcome_of(const char *file, const char *group, const char *test, bool valid) {
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
                if (strcmp(others[i].file, file) == 0 && strcmp(others[i].group, group) == 0 &&
                    strcmp(others[i].test, test) == 0) {
                        others_met++;
                        return others[i].valid;
                }
        return valid;
}

static const char *text_of(json_t *object, const char *key) {
        const char *text = json_string_value(json_object_get(object, key));

        ck_assert_ptr_nonnull(text);
        return text;
}

static void check_case(const char *file, const char *group, const struct tr_schema *schema, json_t *test) {
        const char *name = text_of(test, "description");
        bool valid = outcome_of(file, group, name, json_is_true(json_object_get(test, "valid")));
        struct tr_writer before = TR_WRITER_INIT, value = TR_WRITER_INIT;
        struct tr_schema_violation violation = { 0 };
        int r;

        ck_assert_int_eq(tr_json_pack(&before, json_object_get(test, "data")), 0);
        ck_assert_int_eq(tr_json_pack(&value, json_object_get(test, "data")), 0);
        r = tr_schema_check(schema, value.data, value.len, &violation);
        ck_assert_msg(r == (valid ? 0 : TR_SCHEMA_VIOLATED), "%s: %s: %s: %s %s", file, group, name,
                      violation.path ? violation.path : "fits", violation.reason ? violation.reason : "");
        if (!valid) {
                ck_assert(violation.reason[0] && (!violation.path[0] || violation.path[0] == '/'));
                ck_assert_mem_eq(before.data, value.data, value.len);
        }
        tr_schema_violation_deinit(&violation);
        tr_writer_deinit(&before);
        tr_writer_deinit(&value);
        cases++;
}

static void check_group(const char *file, json_t *group) {
        const char *name = text_of(group, "description");
        struct tr_schema_problem problem = { 0 };
        const struct refused *entry = NULL;
        struct tr_schema *schema = NULL;
        bool wanted = !is_refused(file, name, &entry);
        json_t *test;
        size_t i;
        int r;

        r = tr_schema_compile(json_object_get(group, "schema"), &schema, &problem);
        ck_assert_msg(r == (wanted ? 0 : TR_SCHEMA_WRONG), "%s: %s: %d: %s %s", file, name, r,
                      problem.path ? problem.path : "", problem.reason ? problem.reason : "");
        if (entry) {
                ck_assert_msg(strncmp(problem.reason, entry->reason, strlen(entry->reason)) == 0, "%s: %s", name,
                              problem.reason);
                if (entry->path)
                        ck_assert_str_eq(problem.path, entry->path);
                groups_refused++;
        } else {
                json_array_foreach(json_object_get(group, "tests"), i, test)
                        check_case(file, name, schema, test);
        }
        tr_schema_problem_deinit(&problem);
        tr_schema_unref(schema);
}

static int is_json(const struct dirent *entry) {
        const char *dot = strrchr(entry->d_name, '.');

        return dot && strcmp(dot, ".json") == 0;
}

static void check_file(const char *file) {
        char path[4096];
        json_error_t error;
        json_t *groups, *group;
        size_t i;

        snprintf(path, sizeof(path), "%s/%s", folder, file);
        groups = json_load_file(path, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
        ck_assert_msg(groups, "%s:%d: %s", path, error.line, error.text);
        ck_assert_uint_gt(json_array_size(groups), 0);
        json_array_foreach(groups, i, group)
                check_group(file, group);
        json_decref(groups);
}

START_TEST(all_files) {
        struct dirent **files;
        int count = scandir(folder, &files, is_json, alphasort);

        ck_assert_int_ge(count, 40);
        for (int i = 0; i < count; i++) {
                check_file(files[i]->d_name);
                free(files[i]);
        }
        free(files);
        ck_assert_uint_eq(others_met, sizeof(others) / sizeof(others[0]));
        ck_assert_uint_gt(cases, 1000);
        printf("test_schema_suite: %u cases of %d files, and %u groups that are refused\n", cases, count,
               groups_refused);
}
END_TEST

int main(void) {
        static char path[4096];
        const TTest *const tests[] = { all_files };
        const char *source = getenv("TROUPE_SOURCE");
        DIR *there;

        snprintf(path, sizeof(path), "%s/" SUITE, source ? source : TR_SRCDIR);
        folder = path;
        there = opendir(folder);
        if (!there) {
                printf("test_schema_suite: skipped: there is no %s\n", folder);
                return SKIPPED;
        }
        closedir(there);
        return suite_run("schema_suite", tests, sizeof(tests) / sizeof(tests[0]));
}
