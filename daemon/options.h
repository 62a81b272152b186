/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_OPTIONS_H
#define TR_OPTIONS_H

#include <stdbool.h>

#include "daemon/base/error.h"

/* What the command line asks for. Texts are the command line's own. */
enum tr_command {
        TR_COMMAND_SERVE,
        TR_COMMAND_RUN,
        TR_COMMAND_CHECK,
        TR_COMMAND_HELP,
        TR_COMMAND_VERSION,
};

struct tr_options {
        enum tr_command command;
        bool user;          /* a user's own daemon */
        const char *config; /* NULL: the usual one */
        const char *socket; /* NULL: as configured */
        char **path;        /* directories of -p, in order, NULL-terminated; the array is the options' */
        const char *file;   /* run: the program */
        char **args;        /* run: its arguments, NULL-terminated */
};

enum {
        TR_OPTIONS_USAGE = 1, /* standard error says what is wrong */
};

/* 0, TR_OPTIONS_USAGE, or a negative errno. */
TR_MUST_CHECK int tr_options_parse(int argc, char **argv, struct tr_options *ret_options);
void tr_options_deinit(struct tr_options *options);

/* The text of --help. */
extern const char tr_options_help[];

#endif
