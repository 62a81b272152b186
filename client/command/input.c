/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command/input.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "client/command/argument.h"
#include "client/command/command.h"
#include "client/command/report.h"

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."

/* Bytes of the name in `name=TEXT` or `name:=JSON`; 0: the word is neither. */
static size_t member_name(const char *word) {
        size_t len = strspn(word, NAME_CHARACTERS);
        const char *behind = word + len + (word[len] == ':');

        return len && *behind == '=' ? len : 0;
}

static bool is_twice(char **words, char **at) {
        size_t len = member_name(*at);

        for (char **before = words; before < at; before++)
                if (member_name(*before) == len && !strncmp(*before, *at, len))
                        return true;
        return false;
}

static int read_member(struct tr_invocation *invocation, char *word, struct tr_writer *out) {
        size_t len = member_name(word);
        bool is_json = word[len] == ':';
        const char *text = word + len + is_json + 1;

        tr_write_str(out, word, len);
        if (is_json)
                return tr_argument_append_json(invocation, text, out);
        tr_write_str(out, text, strlen(text));
        return tr_writer_error(out) ? tr_report_errno(invocation, -ENOMEM) : 0;
}

static int read_members(struct tr_invocation *invocation, char **words, char **end, struct tr_writer *out) {
        int status = 0;

        tr_write_map(out, (uint32_t)(end - words));
        for (char **at = words; !status && at < end; at++) {
                if (!member_name(*at))
                        return tr_report_usage(invocation, "`%s` is neither name=TEXT nor name:=JSON", *at);
                if (is_twice(words, at))
                        return tr_report_usage(invocation, "`%s`: the input has that member already", *at);
                status = read_member(invocation, *at, out);
        }
        return status;
}

int tr_input_read(struct tr_invocation *invocation, char **words, char **end) {
        struct tr_writer *out = &invocation->words.args;
        int status;

        if (words == end)
                return 0;
        invocation->words.args_count = 1;
        if (member_name(*words))
                return read_members(invocation, words, end, out);
        status = tr_argument_read(invocation, &words, end, out);
        if (!status && words < end)
                status = tr_report_usage(invocation, "`%s` is one argument too many: an operation has one INPUT", *words);
        return status;
}
