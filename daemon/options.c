/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of trouped. Options end at the first word that is none, so that a program's arguments are its
 * own. */
#include "config.h"

#include "daemon/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char tr_options_help[] = "usage: trouped [--user] [-c FILE] [-S SOCKET] [-p DIR]...\n"
                               "       trouped [-c FILE] [-p DIR]... run FILE [ARG...]\n"
                               "       trouped [--user] [-c FILE] --check\n"
                               "\n"
                               "The actor daemon. It stays in the foreground.\n"
                               "\n"
                               "  run FILE [ARG...]  run a Lua program, without a socket\n"
                               "  -c, --config FILE  read this configuration, not the usual one\n"
                               "  -S, --socket PATH  listen here, not where the configuration says\n"
                               "  -p, --path DIR     search Lua modules here first; may be given again\n"
                               "      --user         a user's own daemon: its files are in the user's folders\n"
                               "      --check        read the configuration, say what is wrong with it, and exit\n"
                               "      --version      print the version\n"
                               "  -h, --help         print this\n"
                               "\n"
                               "See trouped(8), and trouped.json(5) for the configuration.\n";

enum {
        OPTION_USER = 256,
        OPTION_CHECK,
        OPTION_VERSION,
};

static const struct option long_options[] = {
        { "config", required_argument, NULL, 'c' },   { "socket", required_argument, NULL, 'S' },
        { "path", required_argument, NULL, 'p' },     { "user", no_argument, NULL, OPTION_USER },
        { "check", no_argument, NULL, OPTION_CHECK }, { "version", no_argument, NULL, OPTION_VERSION },
        { "help", no_argument, NULL, 'h' },           { NULL },
};

static int usage(const char *text, const char *word) {
        fprintf(stderr, "trouped: %s%s%s\nTry 'trouped --help'.\n", text, word ? ": " : "", word ? word : "");
        return TR_OPTIONS_USAGE;
}

/* One option; the array of directories has room. 0 or TR_OPTIONS_USAGE. */
static int apply(struct tr_options *options, int option, size_t *paths) {
        switch (option) {
        case 'c':
                options->config = optarg;
                return 0;
        case 'S':
                options->socket = optarg;
                return 0;
        case 'p':
                options->path[(*paths)++] = optarg;
                return 0;
        case OPTION_USER:
                options->user = true;
                return 0;
        case OPTION_CHECK:
                options->command = TR_COMMAND_CHECK;
                return 0;
        case OPTION_VERSION:
                options->command = TR_COMMAND_VERSION;
                return 0;
        case 'h':
                options->command = TR_COMMAND_HELP;
                return 0;
        default:
                /* getopt has said what it is about */
                fputs("Try 'trouped --help'.\n", stderr);
                return TR_OPTIONS_USAGE;
        }
}

/* What stands behind the options. */
static int apply_words(struct tr_options *options, char **words) {
        if (!words[0])
                return 0;
        if (strcmp(words[0], "run") != 0)
                return usage("unknown command", words[0]);
        if (options->command != TR_COMMAND_SERVE)
                return usage("--check has no command", words[0]);
        if (options->user || options->socket)
                return usage("run has no socket: --user and --socket are not for it", NULL);
        if (!words[1])
                return usage("run: which FILE?", NULL);
        options->command = TR_COMMAND_RUN;
        options->file = words[1];
        options->args = words + 2;
        return 0;
}

int tr_options_parse(int argc, char **argv, struct tr_options *ret_options) {
        struct tr_options options = { .command = TR_COMMAND_SERVE };
        size_t paths = 0;
        int option, r = 0;

        /* there are fewer directories than words */
        options.path = calloc((size_t)argc + 1, sizeof(*options.path));
        if (!options.path)
                return tr_error_origin(-ENOMEM);
        optind = 0; /* a new scan, also in a test that parses twice */
        while (r == 0 && (option = getopt_long(argc, argv, "+c:S:p:h", long_options, NULL)) != -1) {
                r = apply(&options, option, &paths);
                if (r == 0 && (options.command == TR_COMMAND_HELP || options.command == TR_COMMAND_VERSION)) {
                        *ret_options = options;
                        return 0;
                }
        }
        if (r == 0)
                r = apply_words(&options, argv + optind);
        if (r != 0) {
                tr_options_deinit(&options);
                return r;
        }
        *ret_options = options;
        return 0;
}

void tr_options_deinit(struct tr_options *options) {
        free(options->path);
        *options = (struct tr_options){ 0 };
}
