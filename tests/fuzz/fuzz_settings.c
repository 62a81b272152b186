/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations of any bytes: what is accepted has sense, and what is refused has a place in the text. Looking for
 * lines stays within the text, whatever it is.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/settings/place.h"
#include "daemon/settings/settings.h"
#include "tests/fuzz/fuzz.h"

static const char *const seeds[] = {
        "{\"socket\": {\"path\": \"s\", \"mode\": \"0660\", \"group\": \"g\"}, \"path\": [\"a\", \"/b\"], \"allow\": "
        "[\"files\"]}",
        "{\"actors\": [{\"actor\": \"a:B\", \"args\": [1, -2.5, {\"k\": [null]}, \"\\u00e4\"], \"name\": \"n\", "
        "\"publish\": \"p\",\n"
        "\"heap\": \"1M\", \"mailbox\": 5, \"restart\": \"always\"}]}",
        "{\"limits\": {\"heap\": \"64M\", \"heap_max\": \"1G\", \"stalled\": \"30s\", \"memory\": null, \"nesting\": "
        "7}}",
        "{\"pools\": [{\"name\": \"p\", \"actor\": \"a\", \"backoff\": {\"min\": \"1s\"}, \"routing\": \"shared\"}],\n"
        "\"access\": [{\"user\": \"u\", \"roles\": [\"call\"], \"names\": [\"a.*\", \"*\"]}], \"components\": [\"c\", "
        "{}]}",
        "{\"log\": {\"level\": \"debug\", \"format\": \"json\"}, \"shutdown\": {\"grace\": 5}, \"colour\": {\"b\": "
        "[[\"]}\\\"\"]]}}",
};

void fuzz_seeds(void (*add)(const uint8_t *data, size_t bytes)) {
        for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
                add((const uint8_t *)seeds[i], strlen(seeds[i]));
        add((const uint8_t *)tr_settings_defaults, strlen(tr_settings_defaults));
}

static int count_lines(const char *text, size_t len) {
        int lines = 1;

        for (size_t i = 0; i < len; i++)
                lines += text[i] == '\n';
        return lines;
}

static void check_problems(const struct tr_problems *problems, int lines) {
        for (size_t i = 0; i < problems->count; i++) {
                FUZZ_CHECK(problems->list[i].line >= 1 && problems->list[i].line <= lines);
                FUZZ_CHECK(problems->list[i].text[0]);
        }
}

static void check_settings(const struct tr_settings *settings) {
        const struct tr_settings_limits *limits = &settings->limits;

        FUZZ_CHECK(limits->heap_bytes > 0 && limits->heap_bytes <= limits->heap_max_bytes);
        FUZZ_CHECK(limits->actors > 0 && limits->requests > 0 && limits->mailbox > 0 && limits->async > 0);
        FUZZ_CHECK(settings->socket_path && settings->socket_path[0] == '/' && settings->socket_mode <= 0777);
        for (char **at = settings->path; *at; at++)
                FUZZ_CHECK((*at)[0] == '/');
        for (size_t i = 0; i < settings->actors.count; i++) {
                FUZZ_CHECK(settings->actors.list[i].actor);
                FUZZ_CHECK(settings->actors.list[i].heap_bytes <= limits->heap_max_bytes);
        }
        for (size_t i = 0; i < settings->access.count; i++) {
                FUZZ_CHECK(!settings->access.list[i].user != !settings->access.list[i].group);
                for (char **at = settings->access.list[i].names; at && *at; at++)
                        FUZZ_CHECK(**at);
        }
}

/* On text that no parser has accepted. */
static void check_place(const char *text, size_t len, int lines) {
        const struct tr_place first = { .key = "actors" }, second = { .parent = &first, .index = 0 };
        const struct tr_place third = { .parent = &second, .key = "args" }, fourth = { .parent = &third, .index = 3 };
        int line = tr_place_line(&fourth, text, len);

        FUZZ_CHECK(line >= 1 && line <= lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
        struct tr_problems problems = { 0 }, notes = { 0 };
        struct tr_settings *settings = NULL;
        /* of its own size, so that a sanitizer sees a step too far */
        char *text = malloc(bytes ? bytes : 1);
        int lines, r;

        if (!text)
                return 0;
        memcpy(text, data, bytes);
        lines = count_lines(text, bytes);
        check_place(text, bytes, lines);
        r = tr_settings_parse("/trouped.json", text, bytes, TR_SETTINGS_SYSTEM, &problems, &notes, &settings);
        FUZZ_CHECK(r == 0 || r == TR_SETTINGS_WRONG);
        FUZZ_CHECK((r == 0) == (settings != NULL) && (r == 0) == (problems.count == 0));
        check_problems(&problems, lines);
        check_problems(&notes, lines);
        if (settings)
                check_settings(settings);
        tr_settings_free(settings);
        tr_problems_deinit(&problems);
        tr_problems_deinit(&notes);
        free(text);
        return 0;
}
