/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: what is an option, an operand, an argument, and of which type. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/command/argument.h"
#include "client/command/command.h"
#include "client/troupe.h"
#include "tests/unit/suite.h"

struct chosen {
        bool flag;
        const char *text;
        uint64_t count;
        uint64_t size;
        uint64_t time;
};

static const struct tr_option options[] = {
        { "--flag", TR_OPTION_FLAG, offsetof(struct chosen, flag) },
        { "--text", TR_OPTION_TEXT, offsetof(struct chosen, text) },
        { "-P", TR_OPTION_COUNT, offsetof(struct chosen, count) },
        { "--size", TR_OPTION_SIZE, offsetof(struct chosen, size) },
        { "--time", TR_OPTION_TIME, offsetof(struct chosen, time) },
        { 0 },
};

static const struct tr_command with_args = {
        .name = "test",
        .usage = "TARGET HANDLER [ARG...]",
        .syntax = { options, sizeof(struct chosen), { "TARGET", "HANDLER" }, 2, true },
};
static const struct tr_command without_args = {
        .name = "test",
        .usage = "[TARGET]",
        .syntax = { options, sizeof(struct chosen), { "TARGET" }, 0, false },
};

/* Reads the words, which are separated by spaces (`_` stands for one inside); the exit code. */
static int read_words(const struct tr_command *command, const char *line, struct tr_invocation *ret_invocation,
                      struct chosen *ret_chosen) {
        static char copy[1024];
        char *words[64], *save = NULL;
        int count = 0, keep, null, status;

        snprintf(copy, sizeof(copy), "%s", line);
        for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
                for (char *at = word; *at; at++)
                        if (*at == '_')
                                *at = ' ';
                words[count++] = word;
        }
        *ret_invocation = (struct tr_invocation){ .command = command };
        /* what it says of a mistake is not for the test's log */
        keep = dup(STDERR_FILENO);
        null = open("/dev/null", O_WRONLY);
        dup2(null, STDERR_FILENO);
        status = tr_words_read(ret_invocation, count, words, ret_chosen);
        dup2(keep, STDERR_FILENO);
        close(keep);
        close(null);
        return status;
}

/* Whether the words behind TARGET and HANDLER are these arguments, as a JSON array. */
static void args_are(const char *line, const char *expected) {
        struct tr_invocation invocation;
        struct troupe_value value;
        struct chosen chosen;
        char whole[512], *text;

        snprintf(whole, sizeof(whole), "t h %s", line);
        ck_assert_msg(read_words(&with_args, whole, &invocation, &chosen) == 0, "%s", line);
        ck_assert_str_eq(invocation.words.operands[0], "t");
        ck_assert_str_eq(invocation.words.operands[1], "h");
        tr_writer_reserve(&invocation.words.args, 5);
        memmove(invocation.words.args.data + 5, invocation.words.args.data, invocation.words.args.len);
        memcpy(invocation.words.args.data, "\xdd\0\0\0", 4);
        invocation.words.args.data[4] = invocation.words.args_count;
        value = (struct troupe_value){ invocation.words.args.data, invocation.words.args.len + 5 };
        ck_assert_int_eq(troupe_value_json(&value, &text, NULL), 0);
        ck_assert_str_eq(text, expected);
        free(text);
        tr_words_deinit(&invocation.words);
}

static void is_usage(const struct tr_command *command, const char *line) {
        struct tr_invocation invocation;
        struct chosen chosen;

        ck_assert_msg(read_words(command, line, &invocation, &chosen) == TR_EXIT_USAGE, "%s", line);
        tr_words_deinit(&invocation.words);
}

START_TEST(an_argument_is_decided_by_its_text) {
        args_are("", "[]");
        args_are("1 -5 0 -0 2.5 1e3 -1.5E-2 0.0", "[1,-5,0,0,2.5,1000.0,-0.015,0.0]");
        args_are("007 +49 .5 5. 1e 0x10 1_000 -.5 -007",
                 "[\"007\",\"+49\",\".5\",\"5.\",\"1e\",\"0x10\",\"1 000\",\"-.5\",\"-007\"]");
}
END_TEST

START_TEST(words_and_json) {
        args_are("true false null True nullx", "[true,false,null,\"True\",\"nullx\"]");
        args_are("{\"a\":[1]} [] \"x\" _[", "[{\"a\":[1]},[],\"x\",\" [\"]");
        args_are("nan Infinity /etc/passwd a=b a:=1", "[\"nan\",\"Infinity\",\"/etc/passwd\",\"a=b\",\"a:=1\"]");
        args_are("9223372036854775807 -9223372036854775808", "[9223372036854775807,-9223372036854775808]");
        args_are("{\"$bin\":\"AA==\"} {\"$float\":\"nan\"}", "[{\"$bin\":\"AA==\"},{\"$float\":\"nan\"}]");
}
END_TEST

START_TEST(what_begins_like_json_must_be_json) {
        is_usage(&with_args, "t h {a:1}");
        is_usage(&with_args, "t h [1");
        is_usage(&with_args, "t h \"");
        is_usage(&with_args, "t h 1 9223372036854775808");
        is_usage(&with_args, "t h -99999999999999999999");
        is_usage(&with_args, "t h 1e999");
}
END_TEST

START_TEST(s_takes_anything_as_a_string) {
        args_are("-s 5 -s -s -s {x -s -- -s true", "[\"5\",\"-s\",\"{x\",\"--\",\"true\"]");
        args_are("x -s -5 y", "[\"x\",\"-5\",\"y\"]");
        is_usage(&with_args, "t h -s");
        is_usage(&with_args, "t h x -s");
        is_usage(&with_args, "t h --json");
        is_usage(&with_args, "t h --bin /nonexistent/file");
}
END_TEST

START_TEST(from_the_first_argument_on_there_are_no_options) {
        args_are("x --flag -j -- -x", "[\"x\",\"--flag\",\"-j\",\"--\",\"-x\"]");
        args_are("-5 --flag", "[-5,\"--flag\"]");
        args_are("- --flag", "[\"-\",\"--flag\"]");
        args_are("-- --flag -s -s --", "[\"--flag\",\"-s\",\"--\"]");
        args_are("--flag -- -x", "[\"-x\"]");
        args_are("x --json=f -sx", "[\"x\",\"--json=f\",\"-sx\"]");
        is_usage(&with_args, "t h --unknown");
        is_usage(&with_args, "t h -x");
}
END_TEST

START_TEST(options_stand_between_the_operands_too) {
        struct tr_invocation invocation;
        struct chosen chosen;

        ck_assert_int_eq(read_words(&with_args, "--flag t --text=a_b -P8 h --size 4K --time 2s -j -S /x -t500",
                                    &invocation, &chosen),
                         0);
        ck_assert(chosen.flag);
        ck_assert_str_eq(chosen.text, "a b");
        ck_assert_uint_eq(chosen.count, 8);
        ck_assert_uint_eq(chosen.size, 4096);
        ck_assert_uint_eq(chosen.time, 2000);
        ck_assert(invocation.json);
        ck_assert_str_eq(invocation.path, "/x");
        ck_assert_uint_eq(invocation.timeout_ms, 500);
        ck_assert_uint_eq(invocation.words.args_count, 0);
        ck_assert_int_eq(read_words(&with_args, "-- --flag -s x", &invocation, &chosen), 0);
        ck_assert_str_eq(invocation.words.operands[0], "--flag");
        ck_assert_str_eq(invocation.words.operands[1], "-s");
        ck_assert(!chosen.flag);
        tr_words_deinit(&invocation.words);
}
END_TEST

START_TEST(values_of_options_are_looked_at) {
        static const char *const bad[] = {
                "t h -P 0",      "t h -P x",     "t h -P -1",     "t h -P 8K",   "t h -P",
                "t h --size 4Q", "t h --size 0", "t h --time 5x", "t h -t 0",    "t h -t -5",
                "t h --flag=1",  "t h -S",       "t h --text",    "t h --tex x", "t h --textx y",
        };

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                is_usage(&with_args, bad[i]);
}
END_TEST

START_TEST(a_command_without_arguments_takes_no_more_than_its_operands) {
        struct tr_invocation invocation;
        struct chosen chosen;

        ck_assert_int_eq(read_words(&without_args, "", &invocation, &chosen), 0);
        ck_assert_ptr_null(invocation.words.operands[0]);
        ck_assert_int_eq(read_words(&without_args, "t --flag", &invocation, &chosen), 0);
        ck_assert(chosen.flag);
        is_usage(&without_args, "t u");
        is_usage(&without_args, "t -s u");
        is_usage(&with_args, "t");
        is_usage(&with_args, "");
}
END_TEST

suite_main("command_words", an_argument_is_decided_by_its_text, words_and_json, what_begins_like_json_must_be_json,
           s_takes_anything_as_a_string, from_the_first_argument_on_there_are_no_options,
           options_stand_between_the_operands_too, values_of_options_are_looked_at,
           a_command_without_arguments_takes_no_more_than_its_operands);
