/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the command line.
 *
 * getopt_long() is not used: it would take a negative number for an option, and has no place where options end on
 * their own. The rules here are the same for every command, which only lists its options and operands.
 */
#include "client/command/words.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/argument.h"
#include "client/command/command.h"
#include "client/command/input.h"
#include "client/command/report.h"
#include "proto/quantity.h"

/* The words that are left. */
struct reader {
        struct tr_invocation *invocation;
        char **at;
        char **end;
        void *chosen;         /* the command's struct of options; NULL before COMMAND */
        bool is_chosen;       /* something was written to it */
        struct tr_next *next; /* where the line is not finished; else NULL */
};

enum {
        NOT_MINE = -1,
        UNFINISHED = -2, /* the line is over, and reader->next says what belongs behind it */
};

const struct tr_option tr_global_options[] = {
        { "-S", TR_OPTION_PATH, offsetof(struct tr_invocation, path) },
        { "--user", TR_OPTION_FLAG, offsetof(struct tr_invocation, is_user) },
        { "--system", TR_OPTION_FLAG, offsetof(struct tr_invocation, is_system) },
        { "-j", TR_OPTION_FLAG, offsetof(struct tr_invocation, json) },
        { "-t", TR_OPTION_TIME, offsetof(struct tr_invocation, timeout_ms) },
        { "-h", TR_OPTION_FLAG, offsetof(struct tr_invocation, words.wants_help) },
        { "--help", TR_OPTION_FLAG, offsetof(struct tr_invocation, words.wants_help) },
        { 0 },
};

static bool is_option(const char *word) {
        return word[0] == '-' && word[1] && !tr_argument_is_number(word);
}

/* Whether the word is this option; then *ret_value is what is joined to it ("--name=value", "-P8"), or NULL. */
static bool matches(const char *word, const char *name, const char **ret_value) {
        size_t len = strlen(name);
        bool is_long = name[1] == '-';

        if (strncmp(word, name, len))
                return false;
        *ret_value = NULL;
        if (!word[len])
                return true;
        if (is_long && word[len] != '=')
                return false;
        *ret_value = word + len + is_long;
        return true;
}

static int take_value(struct reader *reader, const struct tr_option *option, const char *joined,
                      const char **ret_value) {
        if (joined) {
                *ret_value = joined;
                return 0;
        }
        if (reader->at == reader->end) {
                if (!reader->next)
                        return tr_report_usage(reader->invocation, "%s wants a value", option->name);
                *reader->next = (struct tr_next){
                        .kind = option->type == TR_OPTION_PATH ? TR_NEXT_FILE : TR_NEXT_VALUE,
                        .name = option->name,
                };
                return UNFINISHED;
        }
        *ret_value = *reader->at++;
        return 0;
}

/* A point in time, as milliseconds since 1970. */
static bool read_date(const char *value, size_t len, uint64_t *ret_ms) {
        struct tr_time time;

        if (!tr_time_parse(value, len, &time) || tr_time_ms(&time) < 0)
                return false;
        *ret_ms = (uint64_t)tr_time_ms(&time);
        return true;
}

/* Bytes, milliseconds or a count: what is a number elsewhere is digits among the words of a command. */
static bool read_number(const char *value, uint64_t *ret_number) {
        if (!*value || value[strspn(value, "0123456789")])
                return false;
        errno = 0;
        *ret_number = strtoull(value, NULL, 10);
        return errno == 0;
}

static int read_quantity(struct reader *reader, enum tr_option_type type, const char *name, const char *value,
                         uint64_t *ret_quantity) {
        static const char *const kinds[] = {
                [TR_OPTION_COUNT] = "a number above 0",
                [TR_OPTION_SIZE] = "a size (bytes, or with K, M or G)",
                [TR_OPTION_TIME] = "a time (milliseconds, or with ms, s, m, h or d)",
                [TR_OPTION_DATE] = "a point in time (as 2030-01-31T18:30:00+01:00, or milliseconds since 1970)",
        };
        size_t len = strlen(value);
        bool is_good = read_number(value, ret_quantity);

        if (!is_good && type == TR_OPTION_TIME)
                is_good = tr_duration_parse(value, len, ret_quantity);
        else if (!is_good && type == TR_OPTION_SIZE)
                is_good = tr_size_parse(value, len, ret_quantity);
        else if (!is_good && type == TR_OPTION_DATE)
                is_good = read_date(value, len, ret_quantity);
        if (!is_good || !*ret_quantity)
                return tr_report_usage(reader->invocation, "%s %s: that is not %s", name, value, kinds[type]);
        return 0;
}

/* Looks the word up in a table, whose offsets are those in `base`. 0, NOT_MINE, UNFINISHED, or the exit code. */
static int read_from_table(struct reader *reader, const char *word, const struct tr_option *option, void *base) {
        const char *value;
        void *place;
        int r;

        while (option && option->name && !matches(word, option->name, &value))
                option++;
        if (!option || !option->name)
                return NOT_MINE;
        place = (char *)base + option->offset;
        if (option->type == TR_OPTION_FLAG) {
                if (value)
                        return tr_report_usage(reader->invocation, "%s takes no value", option->name);
                *(bool *)place = true;
                return 0;
        }
        r = take_value(reader, option, value, &value);
        if (r)
                return r;
        if (option->type == TR_OPTION_TEXT || option->type == TR_OPTION_PATH) {
                *(const char **)place = value;
                return 0;
        }
        return read_quantity(reader, option->type, option->name, value, place);
}

static int read_option(struct reader *reader) {
        struct tr_invocation *invocation = reader->invocation;
        const char *word = *reader->at++;
        int r = NOT_MINE;

        if (reader->chosen)
                r = read_from_table(reader, word, invocation->command->syntax.options, reader->chosen);
        if (r != NOT_MINE)
                reader->is_chosen = true;
        else
                r = read_from_table(reader, word, tr_global_options, invocation);
        if (r != NOT_MINE)
                return r;
        if (reader->chosen && invocation->command->syntax.takes_args)
                return tr_report_usage(invocation, "there is no option %s (as an ARG: -s %s)", word, word);
        return tr_report_usage(invocation, "there is no option %s", word);
}

/* Up to COMMAND, or the end. 0, UNFINISHED, or the exit code. */
static int read_globals(struct reader *reader) {
        int r = 0;

        while (!r && reader->at < reader->end && is_option(*reader->at)) {
                if (!strcmp(*reader->at, "--")) {
                        reader->at++;
                        return 0;
                }
                if (!strcmp(*reader->at, "--version")) /* as everywhere */
                        *reader->at = (char *)"version";
                else
                        r = read_option(reader);
        }
        return r;
}

int tr_words_read_globals(struct tr_invocation *invocation, int argc, char **argv) {
        struct reader reader = { .invocation = invocation, .at = argv + 1, .end = argv + argc };

        return read_globals(&reader) ? -1 : (int)(reader.at - argv);
}

/* The same without looking at what they are: files are read, and mistakes told of, when the line is finished. */
static int skip_args(struct reader *reader) {
        const char *word = NULL;

        while (reader->at < reader->end) {
                word = *reader->at++;
                if (tr_argument_is_marked(word)) {
                        if (reader->at == reader->end)
                                break;
                        reader->at++;
                }
                word = NULL;
        }
        *reader->next = (struct tr_next){
                .kind = !word                ? TR_NEXT_ARG
                        : strcmp(word, "-s") ? TR_NEXT_FILE
                                             : TR_NEXT_VALUE,
                .name = word,
        };
        return UNFINISHED;
}

static int read_args(struct reader *reader) {
        struct tr_words *words = &reader->invocation->words;

        if (reader->invocation->command->syntax.takes_input) {
                int r = tr_input_read(reader->invocation, reader->at, reader->end);

                reader->at = reader->end;
                return r;
        }
        while (reader->at < reader->end) {
                int r = tr_argument_read(reader->invocation, &reader->at, reader->end, &words->args);

                if (r)
                        return r;
                words->args_count++;
        }
        return 0;
}

static void take_tail(struct reader *reader) {
        reader->invocation->words.raw = reader->at;
        reader->invocation->words.raw_count = (int)(reader->end - reader->at);
        reader->at = reader->end;
}

/* A word that looks like an option: one, or the end of them. */
static int read_dashed(struct reader *reader, bool *options_are_over) {
        if (strcmp(*reader->at, "--"))
                return read_option(reader);
        *options_are_over = true;
        reader->at++;
        return 0;
}

static int report_no_choice(const struct tr_invocation *invocation, const char *word) {
        char list[256] = "";

        for (const char *const *choice = invocation->command->syntax.choices; *choice; choice++)
                snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", *list ? ", " : "", *choice);
        return tr_report_usage(invocation, "`%s` is none of %s", word, list);
}

static int read_operand(struct reader *reader, unsigned int index) {
        const char *const *choice = reader->invocation->command->syntax.choices;
        const char *word = *reader->at++;

        while (choice && *choice && strcmp(*choice, word))
                choice++;
        if (choice && !*choice)
                return report_no_choice(reader->invocation, word);
        reader->invocation->words.operands[index] = word;
        return 0;
}

static void begin_command(struct reader *reader, const struct tr_command *command) {
        reader->invocation->command = command;
        memset(reader->chosen, 0, command->syntax.chosen_size);
}

/* Whether the first word behind COMMAND makes it one of its subcommands, which has the rest of the line. */
static bool enter_subcommand(struct reader *reader, const char *word) {
        const struct tr_command *subcommand = tr_subcommand_find(reader->invocation->command, word);

        if (!subcommand || reader->is_chosen)
                return false;
        begin_command(reader, subcommand);
        reader->at++;
        return true;
}

/* Which socket is one choice. */
static int check_globals(const struct tr_invocation *invocation) {
        if (!!invocation->path + invocation->is_user + invocation->is_system > 1)
                return tr_report_usage(invocation, "-S, --user and --system exclude each other");
        return 0;
}

/* Behind the last word of a line that is not finished. */
static void tell_next(const struct reader *reader, unsigned int operands, bool options_are_over) {
        const struct tr_syntax *syntax = &reader->invocation->command->syntax;
        const char *operand = operands < TR_OPERANDS_MAX ? syntax->operands[operands] : NULL;

        *reader->next = (struct tr_next){
                .kind = operand && !strcmp(operand, "FILE") ? TR_NEXT_FILE
                        : operand                           ? TR_NEXT_OPERAND
                        : syntax->takes_args                ? TR_NEXT_ARG
                                                            : TR_NEXT_NOTHING,
                .may_be_option = !options_are_over,
                .may_be_subcommand = !operands && !options_are_over && !reader->is_chosen,
                .name = operand,
                .operand = operands,
        };
}

static int read_words(struct reader *reader) {
        struct tr_invocation *invocation = reader->invocation;
        const struct tr_syntax *syntax = &invocation->command->syntax;
        bool options_are_over = false;
        unsigned int operands = 0;
        int r = 0;

        while (!r && reader->at < reader->end) {
                const char *word = *reader->at;
                bool is_dashed = !options_are_over && is_option(word);
                bool operands_are_over = operands == TR_OPERANDS_MAX || !syntax->operands[operands];

                if (!operands && !is_dashed && !options_are_over && enter_subcommand(reader, word))
                        syntax = &invocation->command->syntax;
                else if (operands_are_over && syntax->takes_tail && !is_dashed)
                        take_tail(reader);
                else if (operands_are_over && syntax->takes_args && (!is_dashed || tr_argument_is_marked(word)))
                        r = reader->next ? skip_args(reader) : read_args(reader);
                else if (is_dashed)
                        r = read_dashed(reader, &options_are_over);
                else if (operands_are_over)
                        r = tr_report_usage(invocation, "`%s` is one argument too many", word);
                else
                        r = read_operand(reader, operands++);
        }
        if (!r && reader->next)
                tell_next(reader, operands, options_are_over);
        else if (!r && operands < syntax->operands_min && !invocation->words.wants_help)
                r = tr_report_usage(invocation, "%s is missing", syntax->operands[operands]);
        return r ? r : check_globals(invocation);
}

int tr_words_read(struct tr_invocation *invocation, int argc, char **argv, void *ret_chosen) {
        struct reader reader = { .invocation = invocation, .at = argv, .end = argv + argc, .chosen = ret_chosen };

        begin_command(&reader, invocation->command);
        if (invocation->command->syntax.takes_words) {
                bool is_marked = argc && !strcmp(*argv, "--");

                invocation->words.raw = argv + is_marked;
                invocation->words.raw_count = argc - is_marked;
                return check_globals(invocation);
        }
        return read_words(&reader);
}

int tr_words_read_unfinished(struct tr_invocation *invocation, int count, char **words, void *ret_chosen,
                             struct tr_next *ret_next) {
        struct reader reader = { .invocation = invocation, .at = words, .end = words + count, .next = ret_next };
        const struct tr_command *command;
        int r = read_globals(&reader);

        if (r)
                return r == UNFINISHED ? 0 : r;
        if (reader.at == reader.end) {
                *ret_next = (struct tr_next){ .kind = TR_NEXT_COMMAND, .may_be_option = true };
                return 0;
        }
        command = tr_command_find(*reader.at);
        if (!command)
                return tr_report_no_command(invocation, *reader.at);
        reader.at++;
        reader.chosen = ret_chosen;
        begin_command(&reader, command);
        r = read_words(&reader);
        return r == UNFINISHED ? 0 : r;
}

void tr_words_deinit(struct tr_words *words) {
        tr_writer_deinit(&words->args);
}
