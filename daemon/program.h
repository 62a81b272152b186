/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_PROGRAM_H
#define TR_PROGRAM_H

#include "daemon/base/error.h"
#include "daemon/settings/settings.h"

/* A Lua program (`trouped run`): its main is an actor of a session of its own, and there is no socket. Main thread. */
struct tr_program_options {
        const struct tr_settings *settings; /* path and limits; allow where it was configured */
        char *const *path;                  /* Lua directories before the settings' path; NULL-terminated */
        const char *file;
        char **args; /* NULL-terminated */
};

enum {
        TR_PROGRAM_NO_FILE = 1, /* there is no such file, or it cannot be a module; standard error says which */
};

/* Runs it to its end. 0 with the code to exit with, TR_PROGRAM_NO_FILE, or a negative errno. */
TR_MUST_CHECK int tr_program_run(const struct tr_program_options *options, int *ret_code);

#endif
