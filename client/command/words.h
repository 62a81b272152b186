/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_WORDS_H
#define TR_COMMAND_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/value.h"

struct tr_invocation;

/*
 * The words behind COMMAND: options, operands (TARGET, HANDLER, NAME), and ARGs.
 *
 * Options stand before the first ARG, between the operands too, the global ones as well; `--` ends them. What looks
 * like an option but is a JSON number is none. From the first ARG on only -s, --json and --bin mean something
 * (argument.h).
 */

enum tr_option_type {
        TR_OPTION_FLAG,  /* bool */
        TR_OPTION_TEXT,  /* const char * */
        TR_OPTION_COUNT, /* uint64_t above 0 */
        TR_OPTION_SIZE,  /* uint64_t of bytes above 0 */
        TR_OPTION_TIME,  /* uint64_t of milliseconds above 0 */
};

struct tr_option {
        const char *name; /* with its dashes: "--name", or "-P" */
        enum tr_option_type type;
        size_t offset; /* in the command's struct of options */
};

#define TR_OPERANDS_MAX 5

struct tr_syntax {
        const struct tr_option *options; /* one without a name is behind the last; NULL: none */
        size_t chosen_size;              /* of the command's struct of options, at most TR_CHOSEN_MAX */
        const char *operands[TR_OPERANDS_MAX];
        unsigned int operands_min;
        bool takes_args;
};

#define TR_CHOSEN_MAX 128

struct tr_words {
        const char *operands[TR_OPERANDS_MAX]; /* NULL where there is none */
        struct tr_writer args;                 /* packed, one behind another */
        uint32_t args_count;
        bool wants_help;
};

/* Reads the global options before COMMAND. The index of COMMAND, argc where there is none; negative: a message was
 * printed. */
int tr_words_read_globals(struct tr_invocation *invocation, int argc, char **argv);
/* Reads what stands behind COMMAND, into the invocation and *ret_chosen, which is zeroed first. 0, or the exit code,
 * and a message was printed. */
int tr_words_read(struct tr_invocation *invocation, int argc, char **argv, void *ret_chosen);
void tr_words_deinit(struct tr_words *words);

#endif
