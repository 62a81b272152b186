/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_COMMAND_H
#define TR_COMMAND_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/command/words.h"

/*
 * The troupe command: one file for each of its commands (cmd-*.c), which registers itself by its struct below.
 */

/* Exit codes that are no error code's of the protocol's. */
enum {
        TR_EXIT_DONE = 0,
        TR_EXIT_FAILED = 1, /* something on this side: no memory, standard output is full */
        TR_EXIT_USAGE = 2,
        TR_EXIT_NO_DAEMON = 3,
        TR_EXIT_NOT_FOUND = 4,
};

struct tr_command;

/* One run of the program. */
struct tr_invocation {
        const struct tr_command *command; /* NULL before it is known */

        /* The global options. At most one of the first three. */
        const char *path;    /* -S, or NULL */
        bool is_user;        /* --user */
        bool is_system;      /* --system */
        bool json;           /* -j */
        uint64_t timeout_ms; /* -t; 0: none */

        struct tr_words words; /* what stands behind COMMAND */
        struct troupe *troupe; /* once tr_link_open() was called */
};

struct tr_command {
        const char *name;
        const char *usage;   /* what stands behind the name */
        const char *summary; /* a line for `troupe help`; NULL: for programs, not listed */
        const char *details; /* more lines for `troupe help COMMAND`, or NULL */
        struct tr_syntax syntax;
        /* Its own, named "NAME WORD": where WORD is the first behind NAME, and none of its own options or `--` before it, it is that one.
         * NULL behind the last; NULL: it has none. */
        const struct tr_command *const *subcommands;
        /* Answers the exit code. `chosen` is the command's own struct of options, which the syntax filled in. */
        int (*run)(struct tr_invocation *invocation, const void *chosen);
};

/* All of them, in the order in which help lists them; NULL behind the last. */
extern const struct tr_command *const tr_commands[];
/* NULL where there is none of that name. */
const struct tr_command *tr_command_find(const char *name);
/* The same of a command's own. */
const struct tr_command *tr_subcommand_find(const struct tr_command *command, const char *word);
/* The WORD of one. */
const char *tr_subcommand_word(const struct tr_command *subcommand);

/* What `troupe help` and `troupe help COMMAND` print. */
void tr_help(const struct tr_command *command);

extern const struct tr_command tr_cmd_ask;
extern const struct tr_command tr_cmd_backup;
extern const struct tr_command tr_cmd_bench;
extern const struct tr_command tr_cmd_call;
extern const struct tr_command tr_cmd_complete;
extern const struct tr_command tr_cmd_done;
extern const struct tr_command tr_cmd_events;
extern const struct tr_command tr_cmd_find;
extern const struct tr_command tr_cmd_help;
extern const struct tr_command tr_cmd_info;
extern const struct tr_command tr_cmd_log;
extern const struct tr_command tr_cmd_ls;
extern const struct tr_command tr_cmd_metrics;
extern const struct tr_command tr_cmd_ping;
extern const struct tr_command tr_cmd_pool;
extern const struct tr_command tr_cmd_publish;
extern const struct tr_command tr_cmd_send;
extern const struct tr_command tr_cmd_reload;
extern const struct tr_command tr_cmd_serve;
extern const struct tr_command tr_cmd_shutdown;
extern const struct tr_command tr_cmd_spawn;
extern const struct tr_command tr_cmd_stop;
extern const struct tr_command tr_cmd_task;
extern const struct tr_command *const tr_cmd_tasks[]; /* those of `task`; NULL behind the last */
extern const struct tr_command tr_cmd_top;
extern const struct tr_command tr_cmd_trace;
extern const struct tr_command tr_cmd_unpublish;
extern const struct tr_command tr_cmd_version;

#endif
