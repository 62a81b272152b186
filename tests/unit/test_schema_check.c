/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the official suite (test_schema_suite) does not ask: what is said about a violation, the values that JSON does
 * not have, empty arrays, patterns as ECMA-262 has them, and what is wrong with a schema.
 */
#include "config.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/contract/json.h"
#include "daemon/contract/schema.h"
#include "tests/unit/notation.h"
#include "tests/unit/schema_fixture.h"
#include "tests/unit/suite.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* A violation or a problem is "PATH REASON"; NULL: there is none. */
static void expect(char *take_said, const char *wanted, const char *of, const char *with) {
        ck_assert_msg(!take_said == !wanted && (!wanted || strcmp(take_said, wanted) == 0), "%s: %s: %s", of, with,
                      take_said ? take_said : "fits");
        free(take_said);
}

struct example {
        const char *schema;
        const char *value;
        const char *wanted;
};

static void check_examples(const struct example *examples, size_t count) {
        for (size_t i = 0; i < count; i++) {
                struct tr_schema *schema = schema_of(examples[i].schema);

                expect(schema_violation(schema, examples[i].value), examples[i].wanted, examples[i].schema,
                       examples[i].value);
                tr_schema_unref(schema);
        }
}

START_TEST(what_is_said) {
        static const struct example examples[] = {
                { "{'type': 'integer'}", "'a'", " is a string; an integer is expected" },
                { "{'type': 'integer'}", "1.5", " is a number; an integer is expected" },
                { "{'type': ['null', 'number', 'array']}", "true",
                  " is a boolean; null, an array or a number is expected" },
                { "{'maxLength': 10}", "'eleven long'", " is 11 characters long; at most 10 are allowed" },
                { "{'minLength': 2}", "'\303\244'", " is 1 character long; at least 2 are needed" },
                { "{'maxLength': 1}", "'\303\244'", NULL },
                { "{'pattern': '^a+$'}", "'b'", " does not match the pattern ^a+$" },
                { "{'minimum': 3}", "2", " is 2; only at least 3 is allowed" },
                { "{'maximum': 3.5}", "4", " is 4; only at most 3.5 is allowed" },
                { "{'exclusiveMinimum': 3}", "3.0", " is 3; only more than 3 is allowed" },
                { "{'exclusiveMaximum': 3}", "3", " is 3; only less than 3 is allowed" },
                { "{'multipleOf': 0.01}", "0.015", " is 0.015; only a multiple of 0.01 is allowed" },
                { "{'const': {'a': 1}}", "{'a':2}", " is not the value that it has to be" },
                { "{'enum': [1, 'b']}", "'a'", " is none of the values that are allowed" },
                { "{'minItems': 2}", "[1]", " has 1 element; at least 2 are needed" },
                { "{'maxItems': 1}", "[1,2]", " has 2 elements; at most 1 is allowed" },
                { "{'uniqueItems': true}", "[1,2,{'a':1,'b':[]},3,{'b':[],'a':1.0}]",
                  " has the same element at 2 and at 4" },
                { "{'contains': {'type': 'null'}}", "[1]",
                  " has 0 elements that fit what it has to contain; at least 1 is needed" },
                { "{'contains': {'type': 'integer'}, 'maxContains': 1}", "[1,2]",
                  " has 2 elements that fit what it has to contain; at most 1 is allowed" },
                { "{'items': {'properties': {'a/b': {'type': 'null'}}}}", "[{},{'a/b':1}]",
                  "/1/a~1b is a number; null is expected" },
                { "{'prefixItems': [true, false]}", "[1,2]", "/1 is not allowed" },
                { "{'required': ['a', 'title']}", "{'a':1}", " lacks the member \"title\"" },
                { "{'dependentRequired': {'a': ['b']}}", "{'a':1}", " lacks the member \"b\", which \"a\" needs" },
                { "{'dependentSchemas': {'a': {'required': ['c']}}}", "{'a':1}", " lacks the member \"c\"" },
                { "{'minProperties': 1}", "{}", " has 0 members; at least 1 is needed" },
                { "{'properties': {'a': true}, 'additionalProperties': false}", "{'a':1,'c~':2}",
                  "/c~0 is not allowed" },
                { "{'patternProperties': {'^x': {'type': 'string'}}}", "{'ax':1,'xa':1}",
                  "/xa is a number; a string is expected" },
                { "{'propertyNames': {'maxLength': 2}}", "{'abc':1}",
                  "/abc has a name that is 3 characters long; at most 2 are allowed" },
                { "{'propertyNames': {'enum': ['a']}}", "{'a':1,'b':1}",
                  "/b has a name that is none of the values that are allowed" },
                { "{'unevaluatedProperties': false, 'allOf': [{'properties': {'a': true}}]}", "{'a':1,'b':1}",
                  "/b is not allowed" },
                { "{'anyOf': [{'type': 'string'}, {'minimum': 3}]}", "2", " is 2; only at least 3 is allowed" },
                { "{'anyOf': [{'minimum': 5}, {'minimum': 3}]}", "2", " fits none of the alternatives" },
                { "{'oneOf': [{'minimum': 1}, {'minimum': 3}]}", "4",
                  " fits more than one of the alternatives, of which it has to fit one" },
                { "{'not': {'type': 'string'}}", "'a'", " fits what it may not fit" },
                { "{'if': {'type': 'string'}, 'then': {'const': 'a'}, 'else': {'type': 'null'}}", "'b'",
                  " is not the value that it has to be" },
                { "{'if': {'type': 'string'}, 'then': {'const': 'a'}, 'else': {'type': 'null'}}", "1",
                  " is a number; null is expected" },
                { "{'$ref': '#/$defs/a', '$defs': {'a': {'items': {'$ref': '#b'}}, 'b': {'$anchor': 'b', 'type': "
                  "'string'}}}",
                  "['a',1]", "/1 is a number; a string is expected" },
                { "false", "nil", " is not allowed" },
                { "true", "#00", NULL },
        };

        check_examples(examples, COUNT(examples));
}
END_TEST

START_TEST(what_json_does_not_have) {
        static const struct example examples[] = {
                { "{'type': ['string', 'number', 'array', 'object', 'null', 'boolean']}", "#6162",
                  " is bytes; null, a boolean, an object, an array, a number or a string is expected" },
                { "{'type': 'string'}", "!-1#00000000", " is a timestamp; a string is expected" },
                { "{'type': 'string'}", "!1#00112233445566778899aabbccddeeff", " is a handle; a string is expected" },
                { "{'minLength': 5, 'minimum': 5, 'minItems': 5, 'minProperties': 5, 'pattern': 'z'}", "#61", NULL },
                { "{'const': 'a'}", "#61", " is not the value that it has to be" },
                { "{'enum': ['a', null]}", "#61", " is none of the values that are allowed" },
                { "{'const': ['a']}", "[#61]", " is not the value that it has to be" },
                { "{'uniqueItems': true}", "['a',#61,!5#61]", NULL },
                { "{'uniqueItems': true}", "['a',#61,!5#61,#61]", " has the same element at 1 and at 3" },
                { "{'not': {'type': ['string', 'object']}}", "#61", NULL },
                /* keys as text */
                { "{'properties': {'1': {'type': 'null'}}}", "{1:2}", "/1 is a number; null is expected" },
                { "{'properties': {'true': {'type': 'null'}}}", "{true:2}", "/true is a number; null is expected" },
                { "{'properties': {'2.5': {'type': 'null'}}}", "{2.5:2}", "/2.5 is a number; null is expected" },
                { "{'properties': {'a': {'type': 'null'}}}", "{#61:2}", "/a is a number; null is expected" },
                { "{'required': ['1']}", "{1:2}", NULL },
                { "{'const': {'1': 2}}", "{1:2}", NULL },
                { "{'patternProperties': {'^[0-9]+$': {'type': 'null'}}}", "{12:2}",
                  "/12 is a number; null is expected" },
                { "{'propertyNames': {'type': 'string'}}", "{#ff:2}",
                  "/? has a name that is text that is no UTF-8; a string is expected" },
                { "{'patternProperties': {'': false}}", "{#ff:2}", NULL },
                { "{'additionalProperties': false}", "{#ff:2}", "/? is not allowed" },
        };

        check_examples(examples, COUNT(examples));
}
END_TEST

START_TEST(numbers_are_exact) {
        static const struct example examples[] = {
                { "{'const': 1}", "1.0", NULL },
                { "{'type': 'integer'}", "-3.0", NULL },
                { "{'const': 9007199254740993}", "9007199254740993", NULL },
                { "{'const': 9007199254740993}", "9007199254740992.0", " is not the value that it has to be" },
                { "{'maximum': 9007199254740992}", "9007199254740993",
                  " is 9007199254740993; only at most 9007199254740992 is allowed" },
                { "{'maximum': 9007199254740992.0}", "9007199254740993",
                  " is 9007199254740993; only at most 9007199254740992 is allowed" },
                { "{'exclusiveMaximum': 9223372036854775808.0}", "9223372036854775807", NULL },
                { "{'minimum': -9223372036854775808}", "-9223372036854775808", NULL },
                { "{'exclusiveMinimum': 2.5}", "2", " is 2; only more than 2.5 is allowed" },
                { "{'exclusiveMinimum': -2.5}", "-2", NULL },
                { "{'multipleOf': 0.01}", "4.02", NULL },
                { "{'multipleOf': 0.1}", "1234567.8", NULL },
                { "{'multipleOf': 3}", "9223372036854775806", NULL },
                { "{'multipleOf': 3}", "9223372036854775807",
                  " is 9223372036854775807; only a multiple of 3 is allowed" },
                { "{'multipleOf': 1e300}", "1.0e300", NULL },
                { "{'multipleOf': 7}", "1.0e300", " is 1e+300; only a multiple of 7 is allowed" },
                { "{'multipleOf': 1e-300}", "1.0e300", NULL },
                { "{'multipleOf': 10}", "0.0", NULL },
                { "{'multipleOf': 10}", "5.0e-324", " is 5e-324; only a multiple of 10 is allowed" },
                { "{'multipleOf': 100}", "-300.0", NULL },
                { "{'uniqueItems': true}", "[1,1.0]", " has the same element at 0 and at 1" },
                { "{'uniqueItems': true}", "[0.0,-0.0]", " has the same element at 0 and at 1" },
                { "{'uniqueItems': true}", "[0,false,'0',nil,'',[],{}]", NULL },
                { "{'maxLength': 1e300}", "'a'", NULL },
                { "{'maxLength': 2.0}", "'abc'", " is 3 characters long; at most 2 are allowed" },
        };

        check_examples(examples, COUNT(examples));
}
END_TEST

START_TEST(no_finite_numbers) {
        static const double numbers[] = { INFINITY, -INFINITY, NAN };

        for (size_t i = 0; i < COUNT(numbers); i++) {
                struct tr_schema *number = schema_of("{'type': ['number', 'integer']}");
                struct tr_schema *anything = schema_of("{'minimum': 5, 'multipleOf': 2}");
                struct tr_writer value = TR_WRITER_INIT;

                tr_write_float(&value, numbers[i]);
                expect(schema_violation_of(number, &value), " is no finite number; a number or an integer is expected",
                       "a number", "NaN");
                expect(schema_violation_of(anything, &value), NULL, "anything", "NaN");
                tr_writer_deinit(&value);
                tr_schema_unref(number);
                tr_schema_unref(anything);
        }
}
END_TEST

/* What is said, and what the value is then. */
static void check_change(const char *text, const char *before, const char *wanted, const char *after) {
        struct tr_schema *schema = schema_of(text);
        struct tr_writer value = TR_WRITER_INIT;
        struct tr_reader reader;
        char *now;

        notation_write(&value, before);
        expect(schema_violation_of(schema, &value), wanted, text, before);
        reader = tr_reader(value.data, value.len);
        now = notation_read(&reader);
        ck_assert_msg(strcmp(now, after) == 0, "%s: %s became %s", text, before, now);
        free(now);
        tr_writer_deinit(&value);
        tr_schema_unref(schema);
}

START_TEST(empty_arrays) {
        static const struct {
                const char *schema;
                const char *value;
                const char *wanted;
                const char *after;
        } examples[] = {
                { "{'type': 'object'}", "[]", NULL, "{}" },
                { "{'type': 'array'}", "[]", NULL, "[]" },
                { "{'type': ['array', 'object']}", "[]", NULL, "[]" },
                { "{'type': ['object', 'null']}", "[]", NULL, "{}" },
                { "{'type': 'object'}", "[1]", " is an array; an object is expected", "[1]" },
                { "{'type': 'array'}", "{}", " is an object; an array is expected", "{}" },
                { "true", "[]", NULL, "[]" },
                { "{'properties': {'a': {'type': 'object'}, 'b': {'type': 'array'}}}", "{'a':[],'b':[],'c':[]}", NULL,
                  "{'a':{},'b':[],'c':[]}" },
                { "{'items': {'type': 'object'}}", "[[],{},[]]", NULL, "[{},{},{}]" },
                /* what is passed on has to fit what it has become */
                { "{'type': 'object', 'required': ['title']}", "[]", " lacks the member \"title\"", "[]" },
                { "{'required': ['title'], 'allOf': [{'type': 'object'}]}", "[]", " lacks the member \"title\"", "[]" },
                { "{'allOf': [{'required': ['title']}, {'type': 'object'}]}", "[]", " lacks the member \"title\"",
                  "[]" },
                { "{'allOf': [{'type': 'object'}, {'type': 'array'}]}", "[]", " is an object; an array is expected",
                  "[]" },
                { "{'allOf': [{'not': {'type': 'object'}}, {'type': ['object', 'string']}]}", "[]",
                  " fits what it may not fit", "[]" },
                { "{'type': 'object', 'const': {}}", "[]", NULL, "{}" },
                /* references */
                { "{'$ref': '#/$defs/o', '$defs': {'o': {'type': 'object'}}}", "[]", NULL, "{}" },
                /* what fits as it is stays as it is */
                { "{'anyOf': [{'type': 'object'}, {'type': 'array'}]}", "[]", NULL, "[]" },
                { "{'oneOf': [{'type': 'object'}, {'type': 'array'}]}", "[]", NULL, "[]" },
                { "{'not': {'type': 'object'}}", "[]", NULL, "[]" },
                { "{'if': {'type': 'object'}, 'then': false}", "[]", NULL, "[]" },
                /* the same beside one that does not */
                { "{'properties': {'a': {'oneOf': [{'type': 'object'}, {'type': 'array'}]}, 'b': {'type': 'object'}}}",
                  "{'a':[],'b':[]}", NULL, "{'a':[],'b':{}}" },
                { "{'properties': {'a': {'if': {'type': 'object'}, 'then': false}, 'b': {'type': 'object'}}}",
                  "{'a':[],'b':[]}", NULL, "{'a':[],'b':{}}" },
                /* alternatives that did not hold change nothing */
                { "{'anyOf': [{'properties': {'a': {'type': 'object'}}, 'required': ['z']}, {'properties': {'b': "
                  "{'type': 'object'}}}]}",
                  "{'a':[],'b':[]}", NULL, "{'a':[],'b':{}}" },
                { "{'oneOf': [{'items': {'type': 'object'}, 'maxItems': 1}, {'minItems': 2, 'items': {'type': "
                  "'object'}}]}",
                  "[[],[]]", NULL, "[{},{}]" },
                { "{'properties': {'k': {'type': 'object'}}, 'if': {'properties': {'k': {'type': 'object'}}, "
                  "'required': "
                  "['k']}, 'then': {'required': ['x']}}",
                  "{'k':[]}", " lacks the member \"x\"", "{'k':[]}" },
                /* nothing is changed where one thing fails */
                { "{'properties': {'a': {'type': 'object'}, 'b': {'type': 'null'}}}", "{'a':[],'b':1}",
                  "/b is a number; null is expected", "{'a':[],'b':1}" },
                { "{'unevaluatedProperties': false, 'type': 'object'}", "[]", NULL, "{}" },
                { "{'contains': {'type': 'object'}}", "[[]]", NULL, "[{}]" },
        };

        for (size_t i = 0; i < COUNT(examples); i++)
                check_change(examples[i].schema, examples[i].value, examples[i].wanted, examples[i].after);
}
END_TEST

/* The long encodings of nothing stay long. */
START_TEST(empty_arrays_of_any_width) {
        struct tr_schema *schema = schema_of("{'items': {'type': 'object'}}");
        uint8_t value[] = { 0x94, 0x90, 0xdc, 0, 0, 0xdd, 0, 0, 0, 0, 0x80 };
        const uint8_t wanted[] = { 0x94, 0x80, 0xde, 0, 0, 0xdf, 0, 0, 0, 0, 0x80 };
        struct tr_schema_violation violation;

        ck_assert_int_eq(tr_schema_check(schema, value, sizeof(value), &violation), 0);
        ck_assert_mem_eq(value, wanted, sizeof(value));
        tr_schema_unref(schema);

        schema = schema_of("{'items': {'type': 'object'}, 'maxItems': 3}");
        memcpy(value, (const uint8_t[]){ 0x94, 0x90, 0xdc, 0, 0, 0xdd, 0, 0, 0, 0, 0x80 }, sizeof(value));
        ck_assert_int_eq(tr_schema_check(schema, value, sizeof(value), &violation), TR_SCHEMA_VIOLATED);
        ck_assert_uint_eq(value[1], 0x90);
        ck_assert_uint_eq(value[2], 0xdc);
        ck_assert_uint_eq(value[5], 0xdd);
        tr_schema_violation_deinit(&violation);
        tr_schema_unref(schema);
}
END_TEST

START_TEST(wrong_schemas) {
        static const struct {
                const char *schema;
                const char *wanted;
        } examples[] = {
                { "1", " has to be a schema: an object, true or false" },
                { "{'properties': {'title': {'minLenght': 1}}}",
                  "/properties/title/minLenght is no keyword that is supported" },
                { "{'$vocabulary': {}}", "/$vocabulary is no keyword that is supported" },
                { "{'definitions': {}}", "/definitions is no keyword that is supported" },
                { "{'dependencies': {}}", "/dependencies is no keyword that is supported" },
                { "{'$recursiveRef': '#'}", "/$recursiveRef is no keyword that is supported" },
                { "{'$schema': 'http://json-schema.org/draft-07/schema#'}",
                  "/$schema is not https://json-schema.org/draft/2020-12/schema, the only one that is supported" },
                { "{'type': 'int'}",
                  "/type has to be null, boolean, object, array, number, string or integer, or a list of "
                  "some of these" },
                { "{'type': []}",
                  "/type has to be null, boolean, object, array, number, string or integer, or a list of "
                  "some of these" },
                { "{'minLength': -1}", "/minLength has to be an integer that is not negative" },
                { "{'minLength': 1.5}", "/minLength has to be an integer that is not negative" },
                { "{'maximum': '1'}", "/maximum has to be a number" },
                { "{'multipleOf': 0}", "/multipleOf has to be above 0" },
                { "{'uniqueItems': 1}", "/uniqueItems has to be true or false" },
                { "{'title': 1}", "/title has to be a string" },
                { "{'enum': 1}", "/enum has to be a list" },
                { "{'items': [true]}", "/items has to be a schema: an object, true or false" },
                { "{'allOf': []}", "/allOf has to be a list of schemas, of at least one" },
                { "{'anyOf': [true, 1]}", "/anyOf/1 has to be a schema: an object, true or false" },
                { "{'properties': []}", "/properties has to be an object" },
                { "{'properties': {'a': 1}}", "/properties/a has to be a schema: an object, true or false" },
                { "{'required': 'a'}", "/required has to be a list of names" },
                { "{'required': [1]}", "/required has to be a list of names" },
                { "{'dependentRequired': {'a': 'b'}}", "/dependentRequired/a has to be a list of names" },
                { "{'dependentSchemas': {'a': 'b'}}",
                  "/dependentSchemas/a has to be a schema: an object, true or false" },
                { "{'$defs': {'a': {'then': 1}}}", "/$defs/a/then has to be a schema: an object, true or false" },
                { "{'pattern': '('}", "/pattern is no pattern: missing closing parenthesis" },
                { "{'pattern': 1}", "/pattern has to be a string" },
                { "{'patternProperties': {'a/b(': true}}",
                  "/patternProperties/a~1b( is no pattern: missing closing parenthesis" },
                { "{'$ref': 1}", "/$ref has to be a string" },
                { "{'$ref': '#/$defs/a'}", "/$ref leads to \"#/$defs/a\", where there is no schema" },
                { "{'$ref': '#/const', 'const': {}}", "/$ref leads to \"#/const\", where there is no schema" },
                { "{'items': {'$ref': '#a'}}", "/items/$ref leads to \"#a\", which is no $anchor there" },
                { "{'$ref': '#%2'}", "/$ref leads to \"#%2\", which is no URI" },
                { "{'$ref': 'other.json'}",
                  "/$ref leads to \"other.json\", which is not in this schema, and others are not read" },
                { "{'$ref': '#'}", " is held against a value by itself, without end" },
                { "{'$defs': {'a': {'allOf': [{'$ref': '#/$defs/b'}]}, 'b': {'not': {'$ref': '#/$defs/a'}}}}",
                  "/$defs/a is held against a value by itself, without end" },
                { "{'$anchor': '1'}",
                  "/$anchor has to be a name of letters, digits, -, _ and . that begins with a letter or _" },
                { "{'$defs': {'a': {'$anchor': 'x'}, 'b': {'$anchor': 'x'}}}",
                  "/$defs/b/$anchor is that of another subschema too" },
                { "{'$defs': {'a': {'$id': 'x'}, 'b': {'$id': 'x'}}}",
                  "/$defs/b/$id is that of another subschema too" },
                { "{'$id': '#a'}", "/$id has a fragment: a name within a schema is an $anchor" },
        };

        for (size_t i = 0; i < COUNT(examples); i++)
                expect(schema_problem(examples[i].schema), examples[i].wanted, examples[i].schema, "compiled");
}
END_TEST

START_TEST(right_schemas) {
        static const char *const examples[] = {
                "{'$schema': 'https://json-schema.org/draft/2020-12/schema#', '$id': 'https://x.example/a'}",
                "{'$comment': 'c'}",
                "{'title': 't', 'description': 'd', 'default': {'minLenght': 1}, 'examples': [1], 'deprecated': true}",
                "{'readOnly': true, 'writeOnly': false, 'format': 'no-such-format'}",
                "{'contentEncoding': 'base64', 'contentMediaType': 'a/b', 'contentSchema': {'type': 'null'}}",
                "{'properties': {'child': {'$ref': '#'}}}",
                "{'$ref': '#/contentSchema', 'contentSchema': true}",
                "{'$defs': {'': {'$defs': {'~/': true}}}, '$ref': '#/$defs//$defs/~0~1'}",
        };

        for (size_t i = 0; i < COUNT(examples); i++)
                expect(schema_problem(examples[i]), NULL, examples[i], "compiled");
}
END_TEST

START_TEST(patterns) {
        static const struct {
                const char *pattern; /* as in JSON */
                const char *text;
                bool matches;
        } examples[] = {
                { "a", "cat", true },
                { "^a$", "a\n", false },
                { "^.$", "\xe2\x80\xa8", false },
                { "^.$", "\xf0\x9f\x98\x80", true },
                { "^\\\\s$", "\xc2\xa0", true },
                { "^\\\\S$", "\xc2\xa0", false },
                { "^[\\\\s]$", "\xef\xbb\xbf", true },
                { "^\\\\d$", "\xd9\xa1", false },
                { "^\\\\w$", "\303\244", false },
                { "^\\\\p{Letter}$", "\303\244", true },
                { "^\\\\P{Letter}$", "\303\244", false },
                { "^\\\\p{Script=Greek}$", "\316\261", true },
                { "^\\\\p{gc=Lu}$", "A", true },
                { "^\\\\p{General_Category=Uppercase_Letter}$", "a", false },
                { "^\\\\u0041\\\\x42\\\\cA\\\\0$", "AB\x01", false },
                { "^\\\\u0041\\\\x42$", "AB", true },
                { "^\\\\u{1F600}$", "\xf0\x9f\x98\x80", true },
                { "^\\\\uD83D\\\\uDE00$", "\xf0\x9f\x98\x80", true },
                { "^\\\\v$", "\x0b", true },
                { "^\\\\v$", "\n", false },
                { "^[[:alpha:]]$", "x", false },
                { "^[[:alpha:]]$", "p]", true },
                { "^[]$", "", false },
                { "^[^]$", "\n", true },
                { "^(a)\\\\1$", "aa", true },
                { "^(?<n>a)\\\\k<n>$", "aa", true },
                { "^(?:a|(b))\\\\1$", "a", true },
                { "^a{2,3}?$", "aaaa", false },
                { "(?<=a)b", "ab", true },
                { "^[\\\\b\\\\-\\\\]]+$", "\b-]", true },
                { "^a#b $", "a#b ", true },
        };

        for (size_t i = 0; i < COUNT(examples); i++) {
                struct tr_schema *schema;
                struct tr_writer value = TR_WRITER_INIT;
                char text[128], *said;

                snprintf(text, sizeof(text), "{'pattern': '%s'}", examples[i].pattern);
                schema = schema_of(text);
                tr_write_text(&value, examples[i].text);
                said = schema_violation_of(schema, &value);
                ck_assert_msg(!said == examples[i].matches, "%s: %s", text, said ? said : "matches");
                free(said);
                tr_writer_deinit(&value);
                tr_schema_unref(schema);
        }
}
END_TEST

/* What PCRE2 would take, but ECMA-262 does not have. */
START_TEST(no_patterns) {
        static const char *const refused[] = {
                "(*UTF)a",
                "(*LIMIT_MATCH=1)a",
                "(?R)",
                "(?i)a",
                "(?>a)",
                "(?|a)",
                "(?#a)",
                "(?C1)a",
                "(?P<n>a)",
                "(?(1)a)",
                "(?1)",
                "a++",
                "a*+",
                "a{2}+",
                "a**",
                "\\\\Qa",
                "\\\\Aa",
                "a\\\\z",
                "\\\\K",
                "\\\\R",
                "\\\\X",
                "\\\\h",
                "\\\\G",
                "\\\\N",
                "\\\\_",
                "\\\\a",
                "\\\\u12",
                "\\\\x1",
                "\\\\c1",
                "\\\\p",
                "\\\\p{^L}",
                "\\\\k",
                "\\\\2(a)",
                "\\\\00",
                "[\\\\1]",
                "[\\\\B]",
                "[a",
                "a{",
                "a{,2}",
                "\\\\uD83D",
                "\\\\g{1}",
                "a\\\\",
                "(?<1>a)",
                "[b-a]",
                "\\\\p{NoSuch}",
                "\\\\u{110000}",
                "(?<=a*)b",
        };

        for (size_t i = 0; i < COUNT(refused); i++) {
                char text[128], *said;

                snprintf(text, sizeof(text), "{'pattern': '%s'}", refused[i]);
                said = schema_problem(text);
                ck_assert_msg(said && strncmp(said, "/pattern is no pattern: ", 24) == 0, "%s: %s", text,
                              said ? said : "is a pattern");
                free(said);
        }
}
END_TEST

/* One cell of a table in Markdown, without its bars, spaces and backquotes; moves *at behind it. */
static char *take_cell(char **at) {
        char *cell = *at + strspn(*at, "| `"), *end = strchr(*at + 1, '|');

        ck_assert_ptr_nonnull(end);
        *at = end;
        while (end > cell && strchr(" `", end[-1]))
                end--;
        return strndup(cell > end ? end : cell, cell > end ? 0 : (size_t)(end - cell));
}

/* A row is schema, value, path, reason; or schema, value, and what that becomes or "refused: " and the reason. */
static void check_row(char *row) {
        char *schema_text = take_cell(&row), *value_text = take_cell(&row), *third = take_cell(&row), *wanted = NULL;
        json_t *value = json_loads(value_text, JSON_DECODE_ANY, NULL);
        struct tr_schema *schema = schema_of(schema_text);
        struct tr_writer packed = TR_WRITER_INIT, becomes = TR_WRITER_INIT;

        ck_assert_int_eq(tr_json_pack(&packed, value), 0);
        if (row[1]) {
                char *reason = take_cell(&row);

                ck_assert_int_gt(asprintf(&wanted, "%s %s", third, reason), 0);
                free(reason);
        } else if (strncmp(third, "refused: `", 10) == 0) {
                ck_assert_int_gt(asprintf(&wanted, " %s", third + 10), 0);
        } else {
                json_t *after = json_loads(third, JSON_DECODE_ANY, NULL);

                ck_assert_int_eq(tr_json_pack(&becomes, after), 0);
                json_decref(after);
        }
        expect(schema_violation_of(schema, &packed), wanted, schema_text, value_text);
        if (becomes.len > 0)
                ck_assert_mem_eq(packed.data, becomes.data, becomes.len);
        json_decref(value);
        tr_schema_unref(schema);
        tr_writer_deinit(&packed);
        tr_writer_deinit(&becomes);
        free(schema_text);
        free(value_text);
        free(third);
        free(wanted);
}

START_TEST(what_the_page_shows) {
        const char *source = getenv("TROUPE_SOURCE");
        char path[4096], *line = NULL;
        size_t size = 0;
        unsigned rows = 0;
        FILE *page;

        snprintf(path, sizeof(path), "%s/docs/schema.md", source ? source : TR_SRCDIR);
        page = fopen(path, "r");
        ck_assert_ptr_nonnull(page);
        while (getline(&line, &size, page) > 0)
                if (strncmp(line, "| `{", 4) == 0) {
                        line[strcspn(line, "\n")] = '\0';
                        check_row(line);
                        rows++;
                }
        ck_assert_uint_eq(rows, 7);
        free(line);
        fclose(page);
}
END_TEST

START_TEST(a_long_path_is_cut) {
        struct tr_schema *schema = schema_of("{'additionalProperties': {'additionalProperties': false}}");
        struct tr_writer value = TR_WRITER_INIT;
        struct tr_schema_violation violation = { 0 };
        char name[2001];

        memset(name, '/', 2000);
        name[2000] = '\0';
        tr_write_map(&value, 1);
        tr_write_text(&value, name);
        tr_write_map(&value, 1);
        tr_write_text(&value, "\x01");
        tr_write_nil(&value);
        ck_assert_int_eq(tr_schema_check(schema, value.data, value.len, &violation), TR_SCHEMA_VIOLATED);
        ck_assert_uint_le(strlen(violation.path), 1024);
        ck_assert_str_eq(violation.path + strlen(violation.path) - 5, "~1...");
        tr_schema_violation_deinit(&violation);
        tr_writer_deinit(&value);
        tr_schema_unref(schema);
}
END_TEST

START_TEST(a_schema_is_counted) {
        struct tr_schema *schema = schema_of("{'pattern': 'a'}");

        ck_assert_ptr_eq(tr_schema_ref(schema), schema);
        ck_assert_ptr_null(tr_schema_unref(schema));
        expect(schema_violation(schema, "'a'"), NULL, "pattern", "a");
        ck_assert_ptr_null(tr_schema_unref(schema));
        ck_assert_ptr_null(tr_schema_unref(NULL));
}
END_TEST

suite_main("schema_check", what_is_said, what_json_does_not_have, numbers_are_exact, no_finite_numbers, empty_arrays,
           empty_arrays_of_any_width, wrong_schemas, right_schemas, patterns, no_patterns, what_the_page_shows,
           a_long_path_is_cut, a_schema_is_counted);
