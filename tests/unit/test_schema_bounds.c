/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schemas and values that are made to be too much. Whatever they are, there is an answer, after so many steps, on a
 * small stack; and wherever memory runs out, that is said and nothing leaks. Time is nowhere measured: what had no
 * bound would not end within any.
 */
#include "config.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "daemon/contract/schema.h"
#include "tests/unit/failing.h"
#include "tests/unit/notation.h"
#include "tests/unit/schema_fixture.h"
#include "tests/unit/suite.h"

/* An actor's thread has 512 KiB, and is not at their beginning when it checks. */
#ifdef TR_SANITIZED
#define STACK_BYTES (8u << 20)
#else
#define STACK_BYTES (256u << 10)
#endif

/* Text that is put together. */
struct text {
        char *data;
        size_t len;
        FILE *file;
};

static void text_begin(struct text *text) {
        text->file = open_memstream(&text->data, &text->len);
        ck_assert_ptr_nonnull(text->file);
}

static void text_repeat(struct text *text, const char *what, unsigned times) {
        for (unsigned i = 0; i < times; i++)
                fputs(what, text->file);
}

static char *text_end(struct text *text) {
        fclose(text->file);
        return text->data;
}

/* "BEFORE... MIDDLE AFTER...", each so many times. */
static char *nested(const char *before, const char *middle, const char *after, unsigned times) {
        struct text text;

        text_begin(&text);
        text_repeat(&text, before, times);
        text_repeat(&text, middle, 1);
        text_repeat(&text, after, times);
        return text_end(&text);
}

static void expect_beginning(char *take_said, const char *wanted) {
        ck_assert_msg(take_said && strncmp(take_said, wanted, strlen(wanted)) == 0, "%s",
                      take_said ? take_said : "fits");
        free(take_said);
}

static void expect_end(char *take_said, const char *wanted) {
        size_t len = take_said ? strlen(take_said) : 0;

        ck_assert_msg(len >= strlen(wanted) && strcmp(take_said + len - strlen(wanted), wanted) == 0, "%s",
                      take_said ? take_said : "nothing");
        free(take_said);
}

static void expect_none(char *take_said) {
        ck_assert_msg(!take_said, "%s", take_said);
}

START_TEST(deep_schemas) {
        char *most = nested("{'items':", "true", "}", TR_SCHEMA_DEPTH_MAX);
        char *more = nested("{'items':", "true", "}", TR_SCHEMA_DEPTH_MAX + 1);
        char *deepest = nested("{'items':", "true", "}", 1000);

        expect_none(schema_problem(most));
        expect_end(schema_problem(more), "/items/items is deeper than the 64 subschemas that may be inside each other");
        expect_end(schema_problem(deepest),
                   "/items/items is deeper than the 64 subschemas that may be inside each other");
        free(most);
        free(more);
        free(deepest);
}
END_TEST

START_TEST(wide_schemas) {
        struct text text;
        char *many;

        text_begin(&text);
        text_repeat(&text, "{'allOf':[true", 1);
        text_repeat(&text, ",true", TR_SCHEMA_SUBSCHEMAS_MAX - 2);
        text_repeat(&text, "]}", 1);
        many = text_end(&text);
        expect_none(schema_problem(many));
        free(many);

        text_begin(&text);
        text_repeat(&text, "{'allOf':[true", 1);
        text_repeat(&text, ",true", TR_SCHEMA_SUBSCHEMAS_MAX - 1);
        text_repeat(&text, "]}", 1);
        many = text_end(&text);
        expect_end(schema_problem(many), "/allOf/16383 is one subschema more than the 16384 that there may be");
        free(many);
}
END_TEST

START_TEST(many_names) {
        struct text text;
        char *many;

        text_begin(&text);
        text_repeat(&text, "{'$defs':{", 1);
        for (unsigned i = 0; i <= TR_SCHEMA_NAMES_MAX; i++)
                fprintf(text.file, "'%u':{'$anchor':'a%u'},", i, i);
        text_repeat(&text, "'last':true}}", 1);
        many = text_end(&text);
        expect_beginning(schema_problem(many), "/$defs/256/$anchor is one name more than the 256 that there may be");
        free(many);
}
END_TEST

/* A chain of references, each held against the same value. */
static char *chain(unsigned length) {
        struct text text;

        text_begin(&text);
        text_repeat(&text, "{'$ref':'#/$defs/0','$defs':{", 1);
        for (unsigned i = 0; i + 2 < length; i++)
                fprintf(text.file, "'%u':{'$ref':'#/$defs/%u'},", i, i + 1);
        fprintf(text.file, "'%u':{'type':'null'}}}", length - 2);
        return text_end(&text);
}

START_TEST(long_chains) {
        char *most = chain(TR_SCHEMA_HEIGHT_MAX), *more = chain(TR_SCHEMA_HEIGHT_MAX + 1), *longest = chain(10000);

        expect_none(schema_problem(most));
        expect_end(schema_problem(more), " is held against a value through more than 64 other subschemas");
        expect_end(schema_problem(longest), " is held against a value through more than 64 other subschemas");
        free(most);
        free(more);
        free(longest);
}
END_TEST

START_TEST(large_values_in_schemas) {
        char *constant = nested("[", "", "]", 129);
        char *schema = nested("", "", "", 0), *large;
        struct text text;

        free(schema);
        text_begin(&text);
        fprintf(text.file, "{'const':%s}", constant);
        schema = text_end(&text);
        expect_beginning(schema_problem(schema), "/const has a value that is nested deeper than 128 levels");
        free(constant);
        free(schema);

        text_begin(&text);
        text_repeat(&text, "{'not':{'enum':['", 1);
        text_repeat(&text, "0123456789abcdef", TR_SCHEMA_VALUES_MAX / 16);
        text_repeat(&text, "']}}", 1);
        large = text_end(&text);
        expect_beginning(schema_problem(large), "/not/enum has values with which all take more than the 1048576 bytes");
        free(large);
}
END_TEST

START_TEST(large_patterns) {
        char *longest = nested("a", "", "", TR_SCHEMA_PATTERN_MAX + 1), *nesting = nested("(", "a", ")", 100);
        struct text text;
        char *many;

        text_begin(&text);
        fprintf(text.file, "{'pattern':'%s'}", longest);
        many = text_end(&text);
        expect_beginning(schema_problem(many), "/pattern is a pattern of 4097 bytes; at most 4096 are allowed");
        free(many);
        free(longest);

        text_begin(&text);
        fprintf(text.file, "{'pattern':'%s'}", nesting);
        many = text_end(&text);
        expect_beginning(schema_problem(many), "/pattern is no pattern: parentheses are too deeply nested");
        free(many);
        free(nesting);

        expect_beginning(schema_problem("{'pattern':'(((a{99}b){99}c){99}d){99}'}"),
                         "/pattern is no pattern: regular expression is too large");

        /* each well within what it may be */
        text_begin(&text);
        text_repeat(&text, "{'patternProperties':{", 1);
        for (unsigned i = 0; i < 100; i++)
                fprintf(text.file, "'(abc%ud){700}':true,", i);
        text_repeat(&text, "'x':true}}", 1);
        many = text_end(&text);
        expect_end(schema_problem(many), " is a pattern with which all take more than the 1048576 bytes that they may");
        free(many);
}
END_TEST

/* Each definition holds its value against the next twice. */
static char *doubling(const char *outer) {
        struct text text;

        text_begin(&text);
        fprintf(text.file, "{%s,'$defs':{", outer);
        for (unsigned i = 0; i < 25; i++)
                fprintf(text.file, "'%u':{'allOf':[{'$ref':'#/$defs/%u'},{'$ref':'#/$defs/%u'}]},", i, i + 1, i + 1);
        fprintf(text.file, "'25':{'type':'null'}}}");
        return text_end(&text);
}

/* That it is too much is never taken for an answer to whether it fits. */
START_TEST(doubling_schemas) {
        static const char *const outers[] = {
                "'$ref':'#/$defs/0'",
                "'not':{'$ref':'#/$defs/0'}",
                "'anyOf':[{'$ref':'#/$defs/0'},true]",
                "'oneOf':[{'$ref':'#/$defs/0'},true]",
                "'if':{'$ref':'#/$defs/0'},'else':true",
        };

        for (size_t i = 0; i < sizeof(outers) / sizeof(outers[0]); i++) {
                char *text = doubling(outers[i]);
                struct tr_schema *schema = schema_of(text);

                expect_beginning(schema_violation(schema, "nil"),
                                 " takes more than the 1048592 steps that checking 1 bytes may take");
                tr_schema_unref(schema);
                free(text);
        }
}
END_TEST

static struct tr_writer string_of(const char *what, unsigned times, const char *end) {
        struct tr_writer value = TR_WRITER_INIT;
        char *text = nested(what, end, "", times);

        tr_write_text(&value, text);
        free(text);
        return value;
}

START_TEST(slow_patterns) {
        static const struct {
                const char *schema;
                const char *what;
                unsigned times;
                const char *end;
        } examples[] = {
                { "{'pattern':'^(a+)+$'}", "a", 40, "b" },
                { "{'pattern':'^(a|a)*$'}", "a", 40, "b" },
                { "{'pattern':'^(a|aa)+$'}", "a", 60, "b" },
                { "{'pattern':'x*[yz]'}", "x", 100000, "" },
                { "{'pattern':'(x+x+)+[yz]'}", "x", 200, "" },
                { "{'pattern':'^(([a-z])+.)+[A-Z]([a-z])+$'}", "a", 60, "" },
                { "{'not':{'pattern':'^(a+)+$'}}", "a", 40, "b" },
                { "{'anyOf':[{'pattern':'^(a+)+$'},true]}", "a", 40, "b" },
                /* memory for going back to */
                { "{'pattern':'^(a|b)*$'}", "ab", 100000, "" },
        };

        for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
                struct tr_schema *schema = schema_of(examples[i].schema);
                struct tr_writer value = string_of(examples[i].what, examples[i].times, examples[i].end);

                expect_beginning(schema_violation_of(schema, &value),
                                 " takes more work, or memory, than there may be to match it with the pattern ");
                tr_writer_deinit(&value);
                tr_schema_unref(schema);
        }
}
END_TEST

START_TEST(long_strings_and_simple_patterns) {
        static const char *const schemas[] = { "{'pattern':'^[a-z]*$'}", "{'pattern':'b$'}", "{'pattern':'^a'}",
                                               "{'not':{'pattern':'[^ab]'}}", "{'minLength':1000001}" };

        for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
                struct tr_schema *schema = schema_of(schemas[i]);
                struct tr_writer value = string_of("a", 1000000, "b");

                expect_none(schema_violation_of(schema, &value));
                tr_writer_deinit(&value);
                tr_schema_unref(schema);
        }
}
END_TEST

START_TEST(many_elements) {
        struct tr_schema *unique = schema_of("{'uniqueItems':true,'items':{'type':['integer','object']}}");
        struct tr_writer value = TR_WRITER_INIT;

        tr_write_array(&value, 100000);
        for (int i = 0; i < 100000; i++)
                tr_write_int(&value, i);
        expect_none(schema_violation_of(unique, &value));
        tr_writer_reset(&value);

        tr_write_array(&value, 50001);
        for (int i = 0; i < 50000; i++) {
                tr_write_map(&value, 1);
                tr_write_text(&value, "same");
                tr_write_int(&value, i);
        }
        tr_write_raw(&value, "\x81\xa4same\x07", 7);
        expect_beginning(schema_violation_of(unique, &value), " has the same element at 7 and at 50000");
        tr_writer_deinit(&value);
        tr_schema_unref(unique);
}
END_TEST

START_TEST(many_choices) {
        struct tr_writer value = TR_WRITER_INIT;
        struct tr_schema *schema;
        struct text text;
        char *many;

        text_begin(&text);
        text_repeat(&text, "{'items':{'enum':[0", 1);
        for (unsigned i = 1; i < 50000; i++)
                fprintf(text.file, ",%u", i * 7);
        text_repeat(&text, "]}}", 1);
        many = text_end(&text);
        schema = schema_of(many);
        tr_write_array(&value, 50001);
        for (int i = 50000; i > 0; i--)
                tr_write_int(&value, i % 50000 * 7);
        tr_write_int(&value, 1);
        expect_beginning(schema_violation_of(schema, &value), "/50000 is none of the values that are allowed");
        tr_writer_deinit(&value);
        tr_schema_unref(schema);
        free(many);
}
END_TEST

START_TEST(many_members) {
        struct tr_writer value = TR_WRITER_INIT;
        struct tr_schema *schema;
        struct text text;
        char *many;

        text_begin(&text);
        text_repeat(&text, "{'required':['0'", 1);
        for (unsigned i = 1; i < 20000; i++)
                fprintf(text.file, ",'%u'", i);
        text_repeat(&text, "],'dependentRequired':{'1':['x']}}", 1);
        many = text_end(&text);
        schema = schema_of(many);
        tr_write_map(&value, 20000);
        for (int i = 0; i < 20000; i++) {
                tr_write_int(&value, i);
                tr_write_nil(&value);
        }
        expect_beginning(schema_violation_of(schema, &value), " lacks the member \"x\", which \"1\" needs");
        tr_writer_deinit(&value);
        tr_schema_unref(schema);
        free(many);
}
END_TEST

/* The same long text is read for each of many schemas. */
START_TEST(many_looks_at_a_long_string) {
        struct tr_writer value = TR_WRITER_INIT, text = string_of("a", 1000000, "");
        char *all;
        struct tr_schema *schema;
        struct text put;

        text_begin(&put);
        text_repeat(&put, "{'allOf':[", 1);
        text_repeat(&put, "{'required':['a']},", 5000);
        text_repeat(&put, "true]}", 1);
        all = text_end(&put);
        schema = schema_of(all);
        tr_write_map(&value, 1);
        tr_write_text(&value, "a");
        tr_write_raw(&value, text.data, text.len);
        expect_beginning(schema_violation_of(schema, &value), "/a takes more than the ");
        tr_writer_deinit(&value);
        tr_writer_deinit(&text);
        tr_schema_unref(schema);
        free(all);
}
END_TEST

/* Patterns that do not match cost something too. */
START_TEST(many_patterns_and_many_names) {
        struct tr_writer value = TR_WRITER_INIT;
        struct tr_schema *schema;
        struct text put;
        char *all;

        text_begin(&put);
        text_repeat(&put, "{'patternProperties':{'^x':true", 1);
        for (unsigned i = 0; i < 500; i++)
                fprintf(put.file, ",'^x%u':true", i);
        text_repeat(&put, "}}", 1);
        all = text_end(&put);
        schema = schema_of(all);
        tr_write_map(&value, 100000);
        for (int i = 0; i < 100000; i++) {
                tr_write_int(&value, i);
                tr_write_nil(&value);
        }
        expect_end(schema_violation_of(schema, &value), " bytes may take");
        tr_writer_deinit(&value);
        tr_schema_unref(schema);
        free(all);
}
END_TEST

/* Many lists of what was seen at once. */
START_TEST(memory_for_what_was_seen) {
        char *text = nested("{'unevaluatedItems':true,'allOf':[", "{'unevaluatedItems':true}", "]}", 60);
        struct tr_schema *schema = schema_of(text);
        struct tr_writer value = TR_WRITER_INIT;

        tr_write_array(&value, 3000000);
        ck_assert_int_eq(tr_writer_reserve(&value, 3000000), 0);
        memset(value.data + value.len, 0xc0, 3000000);
        value.len += 3000000;
        expect_beginning(schema_violation_of(schema, &value), " takes more than 16777216 bytes of memory to check");
        tr_writer_deinit(&value);
        tr_schema_unref(schema);
        free(text);
}
END_TEST

/* The deepest that there is, of everything, on a small stack. */
static void *check_deeply(void *nothing) {
        /* Three nodes for each level of the value, and a resource entered and left at each. */
        struct tr_schema *tree =
                schema_of("{'$id':'a:t','anyOf':[{'allOf':[{'$ref':'a:n'}]}],'$defs':{'n':{'$id':'a:n',"
                          "'$dynamicAnchor':'x','additionalProperties':{'$ref':'a:t'},"
                          "'unevaluatedProperties':false,'items':{'$dynamicRef':'#x'}}}}");
        struct tr_schema *high = schema_of("{'$ref':'#/$defs/a','$defs':{'a':{'allOf':[{'anyOf':[{'oneOf':[{'if':true,"
                                           "'then':{'properties':{'k':{'$ref':'#'}}}}]}]}]}}}");
        char *schema = nested("{'items':", "{'pattern':'^a'}", "}", TR_SCHEMA_DEPTH_MAX - 1);
        char *parentheses = nested("(", "a", ")", 49);
        char *deep = nested("{'k':", "nil", "}", 127), *lists = nested("[", "nil", "]", 128);
        char *constant = nested("{'const':[{'k':", "1", "}]}", 1), *pattern;
        char *values = nested("[{'k':", "1", "}]", 64);
        struct text text;

        expect_none(schema_violation(tree, "{'k':{'k':[[[]]]}}"));
        expect_none(schema_problem(schema));
        expect_beginning(schema_violation(high, deep), "/k/k");
        expect_none(schema_violation(tree, lists));
        free(constant);

        text_begin(&text);
        fprintf(text.file, "{'const':%s}", values);
        constant = text_end(&text);
        tr_schema_unref(high);
        high = schema_of(constant);
        expect_none(schema_violation(high, values));

        text_begin(&text);
        fprintf(text.file, "{'pattern':'^%s$'}", parentheses);
        pattern = text_end(&text);
        tr_schema_unref(tree);
        tree = schema_of(pattern);
        expect_none(schema_violation(tree, "'a'"));

        tr_schema_unref(tree);
        tr_schema_unref(high);
        free(schema);
        free(parentheses);
        free(deep);
        free(lists);
        free(constant);
        free(values);
        free(pattern);
        return nothing;
}

START_TEST(a_small_stack) {
        pthread_attr_t attributes;
        pthread_t thread;

        ck_assert_int_eq(pthread_attr_init(&attributes), 0);
        ck_assert_int_eq(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
        ck_assert_int_eq(pthread_create(&thread, &attributes, check_deeply, NULL), 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        pthread_attr_destroy(&attributes);
}
END_TEST

START_TEST(too_many_levels) {
        struct tr_schema *schema = schema_of("{'allOf':[{'anyOf':[{'oneOf':[{'properties':{'k':{'$ref':'#'}}}]}]}]}");
        char *fits = nested("{'k':", "nil", "}", 60), *deep = nested("{'k':", "nil", "}", 127);

        expect_none(schema_violation(schema, fits));
        expect_end(schema_violation(schema, deep), " takes more than 512 subschemas inside each other to check");
        tr_schema_unref(schema);
        free(fits);
        free(deep);
}
END_TEST

/* Every keyword that takes memory, compiling and checking. */
static const char everything[] =
        "{'$id':'a:b','$defs':{'d':{'$anchor':'d','$dynamicAnchor':'e','type':'string','pattern':'^(a|b)+$'}},"
        "'properties':{'a':{'$ref':'#d'},'e':{'$dynamicRef':'#e'},'o':{'type':'object'},'n':{'multipleOf':0.5},"
        "'l':{'uniqueItems':true,'contains':{'const':{'x':1,'y':[2]}},'prefixItems':[true],'items':{'enum':[{'y':[2],'"
        "x':1},"
        "null]}}},'required':['a','l'],'dependentRequired':{'a':['l']},'dependentSchemas':{'a':{'minProperties':1}},"
        "'patternProperties':{'^x':{'anyOf':[{'type':'object'},false]}},'unevaluatedProperties':{'not':{'type':'null'}}"
        ","
        "'propertyNames':{'maxLength':8},'oneOf':[{'properties':{'a':true}},false],'if':{'required':['a']},"
        "'then':{'type':'object'}}";
static const char something[] = "{'a':'abab','e':'ba','o':[],'n':2.500000,'l':[1,{'x':1,'y':[2]},nil],'xx':[],'z':0}";

START_TEST(compiling_without_memory) {
        json_t *json = schema_json(everything);
        long n = 0;

        do {
                struct tr_schema_problem problem = { 0 };
                struct tr_schema *schema = NULL;
                int r;

                failing_arm(++n);
                r = tr_schema_compile(json, &schema, &problem);
                failing_arm(0);
                ck_assert_int_eq(r, failing_hit() ? -ENOMEM : 0);
                ck_assert(!schema == failing_hit() && !problem.path && !problem.reason);
                tr_schema_unref(schema);
        } while (failing_hit());
        ck_assert_int_gt(n, 10);
        json_decref(json);
}
END_TEST

static void check_without_memory(struct tr_schema *schema, const char *text, int outcome, const char *after) {
        long n = 0;

        do {
                struct tr_schema_violation violation = { 0 };
                struct tr_writer value = TR_WRITER_INIT;
                struct tr_reader reader;
                char *now;
                int r;

                notation_write(&value, text);
                failing_arm(++n);
                r = tr_schema_check(schema, value.data, value.len, &violation);
                failing_arm(0);
                ck_assert_msg(r == (failing_hit() ? -ENOMEM : outcome), "%ld: %d %s %s", n, r,
                              violation.path ? violation.path : "", violation.reason ? violation.reason : "");
                ck_assert((r == TR_SCHEMA_VIOLATED) == !!violation.reason);
                reader = tr_reader(value.data, value.len);
                now = notation_read(&reader);
                ck_assert_str_eq(now, r == 0 ? after : text);
                free(now);
                tr_schema_violation_deinit(&violation);
                tr_writer_deinit(&value);
        } while (failing_hit());
        ck_assert_int_gt(n, 5);
}

START_TEST(checking_without_memory) {
        struct tr_schema *schema = schema_of(everything);

        check_without_memory(schema, something, 0,
                             "{'a':'abab','e':'ba','o':{},'n':2.500000,'l':[1,{'x':1,'y':[2]},nil],'xx':{},'z':0}");
        check_without_memory(schema, "{'a':'abab','l':[1,{'x':1,'y':[2]},nil,nil],'o':[]}", TR_SCHEMA_VIOLATED, NULL);
        tr_schema_unref(schema);
}
END_TEST

suite_main("schema_bounds", deep_schemas, wide_schemas, many_names, long_chains, large_values_in_schemas,
           large_patterns, doubling_schemas, slow_patterns, long_strings_and_simple_patterns, many_elements,
           many_choices, many_members, many_looks_at_a_long_string, many_patterns_and_many_names,
           memory_for_what_was_seen, a_small_stack, too_many_levels, compiling_without_memory, checking_without_memory);
