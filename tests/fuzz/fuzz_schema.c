/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schemas and values of any bytes: the schema's text, a NUL, and the value. Whatever the schema is, it is compiled or
 * there is a place in it that is wrong. Whatever the value is (that the scanner lets through), it fits or there is a
 * place in it that does not; what does not is left as it was, and what fits fits again, and is changed no more.
 */
#include "config.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/contract/schema.h"
#include "proto/frame.h"
#include "proto/utf8.h"
#include "tests/fuzz/fuzz.h"

#define SEED(schema, value) \
        { schema "\0" value, sizeof(schema "\0" value) - 1 }

static const struct {
        const char *data;
        size_t bytes;
} seeds[] = {
        SEED("{\"type\":[\"object\",\"null\"],\"required\":[\"a\"],\"properties\":{\"a\":{\"maxLength\":2},\"b\":{"
             "\"items\":{"
             "\"$ref\":\"#\"}}},\"additionalProperties\":false}",
             "\x82\xa1"
             "a\xa2xy\xa1"
             "b\x92\xc0\x81\xa1"
             "a\xa0"),
        SEED("{\"properties\":{\"o\":{\"type\":\"object\"},\"p\":{\"oneOf\":[{\"type\":\"array\"},{\"type\":\"object\"}"
             "]}}}",
             "\x82\xa1o\x90\xa1p\xdc\0\0"),
        SEED("{\"$id\":\"http://a/b/c\",\"$ref\":\"../d?x#e\",\"$defs\":{\"d\":{\"$id\":\"/"
             "d?x\",\"$dynamicAnchor\":\"e\",\"not\":{"
             "\"$dynamicRef\":\"#f\"},\"$defs\":{\"f\":{\"$anchor\":\"f\",\"const\":{\"k\":[1.5,true]}}}}}}",
             "\x81\xa1k\x92\xcb\x3f\xf8\0\0\0\0\0\0\xc3"),
        SEED("{\"pattern\":\"^(?:a|[^b-d\\\\]]+|\\\\p{Lu}{2,3}?|\\\\u{1F600}\\\\s)*$\",\"minLength\":1,\"format\":"
             "\"x\"}",
             "\xa6"
             "aabABC"),
        SEED("{\"uniqueItems\":true,\"contains\":{\"multipleOf\":0.01},\"minContains\":2,\"prefixItems\":[{\"enum\":[1,"
             "\"x\"]}],"
             "\"unevaluatedItems\":{\"exclusiveMinimum\":-3,\"maximum\":1e9}}",
             "\x94\x01\x02\xca\x3f\x80\0\0\x82\x01\x02\xc3\x90"),
        SEED("{\"patternProperties\":{\"^x\":true},\"propertyNames\":{\"maxLength\":3},\"unevaluatedProperties\":false,"
             "\"if\":{"
             "\"required\":[\"x\"]},\"then\":{\"dependentRequired\":{\"x\":[\"y\"]}},\"else\":{\"dependentSchemas\":{"
             "\"z\":{"
             "\"maxProperties\":1}}},\"anyOf\":[{\"properties\":{\"z\":true}},{\"type\":\"string\"}]}",
             "\x83\xa1x\xc4\x01\xff\xa1y\xd6\xff\0\0\0\x01\x05\xc0"),
};

void fuzz_seeds(void (*add)(const uint8_t *data, size_t bytes)) {
        for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
                add((const uint8_t *)seeds[i].data, seeds[i].bytes);
}

/* Whether the bytes are one value that may cross, as the scanner has it. */
static bool is_scanned(const uint8_t *value, size_t bytes) {
        static const uint8_t before[] = { 0x93, 0x02, 0xa1, 'm', 0x91 };
        uint8_t *frame = malloc(sizeof(before) + bytes);
        struct tr_scanner scanner;
        struct tr_frame found;
        struct tr_refusal refusal;
        bool is_whole;

        if (!frame)
                return false;
        memcpy(frame, before, sizeof(before));
        memcpy(frame + sizeof(before), value, bytes);
        tr_scanner_init(&scanner, TR_FRAME_DEFAULT);
        is_whole = tr_scan(&scanner, frame, sizeof(before) + bytes, &found, &refusal) == TR_SCAN_FRAME &&
                   found.bytes == sizeof(before) + bytes;
        free(frame);
        return is_whole;
}

static void check_place(const char *path, const char *reason) {
        FUZZ_CHECK((!path[0] || path[0] == '/') && reason[0]);
        FUZZ_CHECK(tr_utf8_is_valid(path, strlen(path)));
        for (const char *at = path; *at; at++)
                FUZZ_CHECK(*at != '~' || at[1] == '0' || at[1] == '1' || strncmp(at + 1, "...", 3) == 0);
}

static void check_value(const struct tr_schema *schema, const uint8_t *value, size_t bytes) {
        struct tr_schema_violation violation = { 0 };
        /* of its own size, so that a sanitizer sees a step too far */
        uint8_t *once = malloc(bytes), *twice = malloc(bytes);
        int r;

        if (once && twice) {
                memcpy(once, value, bytes);
                r = tr_schema_check(schema, once, bytes, &violation);
                FUZZ_CHECK(r == 0 || r == TR_SCHEMA_VIOLATED);
                memcpy(twice, once, bytes);
                if (r) {
                        check_place(violation.path, violation.reason);
                        FUZZ_CHECK(memcmp(once, value, bytes) == 0);
                        tr_schema_violation_deinit(&violation);
                } else {
                        FUZZ_CHECK(tr_schema_check(schema, twice, bytes, &violation) == 0);
                        FUZZ_CHECK(memcmp(once, twice, bytes) == 0);
                }
        }
        free(once);
        free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
        const uint8_t *end = memchr(data, 0, bytes);
        struct tr_schema_problem problem = { 0 };
        struct tr_schema *schema = NULL;
        size_t text_bytes = end ? (size_t)(end - data) : bytes, value_bytes = end ? bytes - text_bytes - 1 : 0;
        json_t *json = json_loadb((const char *)data, text_bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        int r;

        if (!json)
                return 0;
        r = tr_schema_compile(json, &schema, &problem);
        json_decref(json);
        FUZZ_CHECK(r == (schema ? 0 : TR_SCHEMA_WRONG));
        if (r)
                check_place(problem.path, problem.reason);
        else if (value_bytes > 0 && is_scanned(end + 1, value_bytes))
                check_value(schema, end + 1, value_bytes);
        tr_schema_problem_deinit(&problem);
        tr_schema_unref(schema);
        return 0;
}
