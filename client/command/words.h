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
        TR_OPTION_PATH,  /* const char *: of a file */
        TR_OPTION_COUNT, /* uint64_t above 0 */
        TR_OPTION_SIZE,  /* uint64_t of bytes above 0 */
        TR_OPTION_TIME,  /* uint64_t of milliseconds above 0 */
        TR_OPTION_DATE,  /* uint64_t of milliseconds since 1970, above 0 */
};

struct tr_option {
        const char *name; /* with its dashes: "--name", or "-P" */
        enum tr_option_type type;
        size_t offset; /* in the command's struct of options; of a global one in the invocation */
};

/* One without a name is behind the last. */
extern const struct tr_option tr_global_options[];

#define TR_OPERANDS_MAX 5

struct tr_syntax {
        const struct tr_option *options; /* one without a name is behind the last; NULL: none */
        size_t chosen_size;              /* of the command's struct of options, at most TR_CHOSEN_MAX */
        const char *operands[TR_OPERANDS_MAX];
        unsigned int operands_min;
        bool takes_args;
        const char *const *choices; /* all that operands may be, NULL behind the last; NULL: anything */
        bool takes_input;           /* the args are an operation's INPUT, which is one value (input.h) */
        bool takes_tail;            /* what stands behind the operands is left as it is: words.raw */
        bool takes_words;           /* it reads for itself what stands behind it, or behind a `--` there */
};

#define TR_CHOSEN_MAX 128

struct tr_words {
        const char *operands[TR_OPERANDS_MAX]; /* NULL where there is none */
        struct tr_writer args;                 /* packed, one behind another */
        uint32_t args_count;
        char **raw; /* of a command that takes words */
        int raw_count;
        bool wants_help;
};

/* What may stand behind the words of a line that is not finished. */
enum tr_next_kind {
        TR_NEXT_NOTHING,
        TR_NEXT_COMMAND,
        TR_NEXT_OPERAND, /* the one that `name` names */
        TR_NEXT_ARG,
        TR_NEXT_VALUE, /* of the option `name`, and nothing else */
        TR_NEXT_FILE,  /* the same, where that is a file's path */
};

struct tr_next {
        enum tr_next_kind kind;
        bool may_be_option;     /* as well */
        bool may_be_subcommand; /* as well */
        const char *name;
        unsigned int operand; /* which one that is */
};

/* Reads the global options before COMMAND. The index of COMMAND, argc where there is none; negative: a message was
 * printed. */
int tr_words_read_globals(struct tr_invocation *invocation, int argc, char **argv);
/* Reads what stands behind COMMAND, into the invocation and *ret_chosen, which is zeroed first. 0, or the exit code,
 * and a message was printed. */
int tr_words_read(struct tr_invocation *invocation, int argc, char **argv, void *ret_chosen);
/* Reads the words of a line that is not finished, behind `troupe`, as far as they go, and says what may come next. The
 * same answers. */
int tr_words_read_unfinished(struct tr_invocation *invocation, int count, char **words, void *ret_chosen,
                             struct tr_next *ret_next);
void tr_words_deinit(struct tr_words *words);

#endif
