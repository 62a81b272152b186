/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of trouped. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/options.h"
#include "tests/unit/suite.h"

static struct tr_options options;

/* Parses words up to the first NULL. */
static int parse(const char **words) {
        int count = 0;

        while (words[count])
                count++;
        return tr_options_parse(count, (char **)words, &options);
}

/* The options keep pointing at the words, so those live as long as the caller does. */
#define PARSE(...)                                                              \
        ({                                                                      \
                static const char *words_[] = { "trouped", __VA_ARGS__, NULL }; \
                parse(words_);                                                  \
        })

/* What getopt and we say of mistakes is not what is tested. */
static void be_silent(void) {
        int null = open("/dev/null", O_WRONLY);

        ck_assert_int_eq(dup2(null, STDERR_FILENO), STDERR_FILENO);
}

START_TEST(nothing_is_to_serve) {
        ck_assert_int_eq(parse((const char *[]){ "trouped", NULL }), 0);
        ck_assert_int_eq(options.command, TR_COMMAND_SERVE);
        ck_assert(!options.user);
        ck_assert_ptr_null(options.config);
        ck_assert_ptr_null(options.socket);
        ck_assert_ptr_null(options.path[0]);
        tr_options_deinit(&options);
}
END_TEST

START_TEST(options_are_read) {
        ck_assert_int_eq(PARSE("--user", "-c", "f", "-S", "s", "-p", "a", "--path=b", "-pc"), 0);
        ck_assert_int_eq(options.command, TR_COMMAND_SERVE);
        ck_assert(options.user);
        ck_assert_str_eq(options.config, "f");
        ck_assert_str_eq(options.socket, "s");
        ck_assert_str_eq(options.path[0], "a");
        ck_assert_str_eq(options.path[1], "b");
        ck_assert_str_eq(options.path[2], "c");
        ck_assert_ptr_null(options.path[3]);
        tr_options_deinit(&options);

        ck_assert_int_eq(PARSE("--check", "--config", "f"), 0);
        ck_assert_int_eq(options.command, TR_COMMAND_CHECK);
        ck_assert_str_eq(options.config, "f");
        tr_options_deinit(&options);
}
END_TEST

START_TEST(what_stands_behind_the_file_is_the_programs) {
        ck_assert_int_eq(PARSE("-p", "a", "run", "x.lua", "-p", "--help", "--", "y"), 0);
        ck_assert_int_eq(options.command, TR_COMMAND_RUN);
        ck_assert_str_eq(options.path[0], "a");
        ck_assert_ptr_null(options.path[1]);
        ck_assert_str_eq(options.file, "x.lua");
        ck_assert_str_eq(options.args[0], "-p");
        ck_assert_str_eq(options.args[1], "--help");
        ck_assert_str_eq(options.args[2], "--");
        ck_assert_str_eq(options.args[3], "y");
        ck_assert_ptr_null(options.args[4]);
        tr_options_deinit(&options);
}
END_TEST

START_TEST(help_and_version_win) {
        ck_assert_int_eq(PARSE("--help", "whatever"), 0);
        ck_assert_int_eq(options.command, TR_COMMAND_HELP);
        tr_options_deinit(&options);
        ck_assert_int_eq(PARSE("--version", "--unknown"), 0);
        ck_assert_int_eq(options.command, TR_COMMAND_VERSION);
        tr_options_deinit(&options);
}
END_TEST

START_TEST(mistakes_are_refused) {
        be_silent();
        ck_assert_int_eq(PARSE("--unknown"), TR_OPTIONS_USAGE);
        ck_assert_int_eq(PARSE("-x"), TR_OPTIONS_USAGE);
        ck_assert_int_eq(PARSE("-c"), TR_OPTIONS_USAGE);
        ck_assert_int_eq(PARSE("--user=x"), TR_OPTIONS_USAGE);
        ck_assert_int_eq(PARSE("start"), TR_OPTIONS_USAGE);
        ck_assert_int_eq(PARSE("run"), TR_OPTIONS_USAGE);
        ck_assert_int_eq(PARSE("--user", "run", "x.lua"), TR_OPTIONS_USAGE);
        ck_assert_int_eq(PARSE("-S", "s", "run", "x.lua"), TR_OPTIONS_USAGE);
        ck_assert_int_eq(PARSE("--check", "run", "x.lua"), TR_OPTIONS_USAGE);
        ck_assert_int_eq(PARSE("--", "x"), TR_OPTIONS_USAGE);
}
END_TEST

suite_main("options", nothing_is_to_serve, options_are_read, what_stands_behind_the_file_is_the_programs,
           help_and_version_win, mistakes_are_refused);
