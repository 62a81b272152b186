/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the command line.
 *
 * getopt_long() is not used: it would take a negative number for an option, and has no place where options end on
 * their own. The rules here are the same for every command, which only lists its options and operands.
 */
#include "client/command/words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/argument.h"
#include "client/command/command.h"
#include "client/command/report.h"
#include "proto/quantity.h"

/* The words that are left. */
struct reader {
        struct tr_invocation *invocation;
        char **at;
        char **end;
        void *chosen; /* the command's struct of options; NULL before COMMAND */
};

enum {
        NOT_MINE = -1
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

static int take_value(struct reader *reader, const char *name, const char *joined, const char **ret_value) {
        if (joined) {
                *ret_value = joined;
                return 0;
        }
        if (reader->at == reader->end)
                return tr_report_usage(reader->invocation, "%s wants a value", name);
        *ret_value = *reader->at++;
        return 0;
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
        };
        size_t len = strlen(value);
        bool is_good = read_number(value, ret_quantity);

        if (!is_good && type != TR_OPTION_COUNT)
                is_good = type == TR_OPTION_TIME ? tr_duration_parse(value, len, ret_quantity)
                                                 : tr_size_parse(value, len, ret_quantity);
        if (!is_good || !*ret_quantity)
                return tr_report_usage(reader->invocation, "%s %s: that is not %s", name, value, kinds[type]);
        return 0;
}

/* 0, NOT_MINE, or the exit code. */
static int read_global(struct reader *reader, const char *word) {
        struct tr_invocation *invocation = reader->invocation;
        const char *value;
        int r;

        if (matches(word, "-S", &value)) {
                invocation->where = TR_WHERE_PATH;
                return take_value(reader, "-S", value, &invocation->path);
        }
        if (matches(word, "-t", &value)) {
                r = take_value(reader, "-t", value, &value);
                return r ? r : read_quantity(reader, TR_OPTION_TIME, "-t", value, &invocation->timeout_ms);
        }
        if (!strcmp(word, "--user"))
                invocation->where = TR_WHERE_USER;
        else if (!strcmp(word, "--system"))
                invocation->where = TR_WHERE_SYSTEM;
        else if (!strcmp(word, "-j"))
                invocation->json = true;
        else if (!strcmp(word, "--help") || !strcmp(word, "-h"))
                invocation->words.wants_help = true;
        else
                return NOT_MINE;
        return 0;
}

static int read_own(struct reader *reader, const char *word) {
        const struct tr_option *option = reader->invocation->command->syntax.options;
        const char *value;
        void *place;
        int r;

        while (option && option->name && !matches(word, option->name, &value))
                option++;
        if (!option || !option->name)
                return NOT_MINE;
        place = (char *)reader->chosen + option->offset;
        if (option->type == TR_OPTION_FLAG) {
                if (value)
                        return tr_report_usage(reader->invocation, "%s takes no value", option->name);
                *(bool *)place = true;
                return 0;
        }
        r = take_value(reader, option->name, value, &value);
        if (r)
                return r;
        if (option->type == TR_OPTION_TEXT) {
                *(const char **)place = value;
                return 0;
        }
        return read_quantity(reader, option->type, option->name, value, place);
}

static int read_option(struct reader *reader) {
        const char *word = *reader->at++;
        int r = reader->chosen ? read_own(reader, word) : NOT_MINE;

        if (r == NOT_MINE)
                r = read_global(reader, word);
        if (r != NOT_MINE)
                return r;
        if (reader->chosen && reader->invocation->command->syntax.takes_args)
                return tr_report_usage(reader->invocation, "there is no option %s (as an ARG: -s %s)", word, word);
        return tr_report_usage(reader->invocation, "there is no option %s", word);
}

int tr_words_read_globals(struct tr_invocation *invocation, int argc, char **argv) {
        struct reader reader = { .invocation = invocation, .at = argv + 1, .end = argv + argc };

        while (reader.at < reader.end && is_option(*reader.at)) {
                if (!strcmp(*reader.at, "--"))
                        return reader.at - argv + 1;
                if (!strcmp(*reader.at, "--version")) /* as everywhere */
                        *reader.at = (char *)"version";
                else if (read_option(&reader))
                        return -1;
        }
        return reader.at - argv;
}

static int read_args(struct reader *reader) {
        struct tr_words *words = &reader->invocation->words;

        while (reader->at < reader->end) {
                int r = tr_argument_read(reader->invocation, &reader->at, reader->end, &words->args);

                if (r)
                        return r;
                words->args_count++;
        }
        return 0;
}

/* A word that looks like an option: one, or the end of them. */
static int read_dashed(struct reader *reader, bool *options_are_over) {
        if (strcmp(*reader->at, "--"))
                return read_option(reader);
        *options_are_over = true;
        reader->at++;
        return 0;
}

int tr_words_read(struct tr_invocation *invocation, int argc, char **argv, void *ret_chosen) {
        const struct tr_syntax *syntax = &invocation->command->syntax;
        struct reader reader = { .invocation = invocation, .at = argv, .end = argv + argc, .chosen = ret_chosen };
        bool options_are_over = false;
        unsigned int operands = 0;
        int r = 0;

        memset(ret_chosen, 0, syntax->chosen_size);
        while (!r && reader.at < reader.end) {
                const char *word = *reader.at;
                bool is_dashed = !options_are_over && is_option(word);
                bool operands_are_over = operands == TR_OPERANDS_MAX || !syntax->operands[operands];

                if (operands_are_over && syntax->takes_args && (!is_dashed || tr_argument_is_marked(word)))
                        r = read_args(&reader);
                else if (is_dashed)
                        r = read_dashed(&reader, &options_are_over);
                else if (operands_are_over)
                        r = tr_report_usage(invocation, "`%s` is one argument too many", word);
                else
                        invocation->words.operands[operands++] = *reader.at++;
        }
        if (!r && operands < syntax->operands_min && !invocation->words.wants_help)
                r = tr_report_usage(invocation, "%s is missing", syntax->operands[operands]);
        return r;
}

void tr_words_deinit(struct tr_words *words) {
        tr_writer_deinit(&words->args);
}
