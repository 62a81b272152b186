/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ARG is.
 *
 * A string may look like anything, so a script that passes one on writes `-s "$v"`. A person may type a number or a
 * list as it is: what begins like JSON and is none is refused, because it was probably meant to be, and would arrive
 * as a string otherwise.
 */
#include "client/command/argument.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/command/command.h"
#include "client/command/report.h"
#include "client/json.h"
#include "client/troupe.h"

static const char *skip_digits(const char *text) {
        return text + strspn(text, "0123456789");
}

bool tr_argument_is_number(const char *text) {
        const char *digits = text + (*text == '-'), *at = skip_digits(digits);

        if (at == digits || (*digits == '0' && at > digits + 1))
                return false;
        if (*at == '.') {
                digits = at + 1;
                at = skip_digits(digits);
                if (at == digits)
                        return false;
        }
        if (*at == 'e' || *at == 'E') {
                digits = at + 1 + (at[1] == '+' || at[1] == '-');
                at = skip_digits(digits);
                if (at == digits)
                        return false;
        }
        return !*at;
}

const char *const tr_argument_marks[] = { "-s", "--json", "--bin", NULL };

bool tr_argument_is_marked(const char *word) {
        for (const char *const *mark = tr_argument_marks; *mark; mark++)
                if (!strcmp(word, *mark))
                        return true;
        return false;
}

static bool is_json(const char *text) {
        return strchr("{[\"", *text ? *text : 'x') || !strcmp(text, "true") || !strcmp(text, "false") ||
               !strcmp(text, "null") || tr_argument_is_number(text);
}

static int append(struct tr_invocation *invocation, struct tr_writer *out, struct troupe_value *take_value) {
        tr_write_raw(out, take_value->data, take_value->size);
        troupe_value_free(take_value);
        return tr_writer_error(out) ? tr_report_errno(invocation, -ENOMEM) : 0;
}

static int append_string(struct tr_invocation *invocation, struct tr_writer *out, const char *text) {
        tr_write_str(out, text, strlen(text));
        return tr_writer_error(out) ? tr_report_errno(invocation, -ENOMEM) : 0;
}

int tr_argument_append_json(struct tr_invocation *invocation, const char *text, struct tr_writer *out) {
        char problem[TR_JSON_PROBLEM_MAX];
        struct troupe_value value;
        int r = troupe_pack(&value, "j", text);

        if (!r)
                return append(invocation, out, &value);
        if (r == -ENOMEM || !tr_json_problem(text, strlen(text), problem))
                return tr_report_errno(invocation, r);
        return tr_report_usage(invocation, "%.60s: %s (as a string: -s '%.60s')", text, problem, text);
}

static int read_all(int fd, struct tr_writer *out) {
        ssize_t n;
        int r;

        do {
                r = tr_writer_reserve(out, 65536);
                if (r)
                        return r;
                n = read(fd, out->data + out->len, 65536);
                if (n > 0)
                        out->len += n;
        } while (n > 0 || (n < 0 && errno == EINTR));
        return n < 0 ? -errno : 0;
}

static int read_file(struct tr_invocation *invocation, const char *path, struct tr_writer *out) {
        bool is_input = !strcmp(path, "-");
        int fd = is_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
        int r = fd < 0 ? -errno : read_all(fd, out);

        if (!is_input && fd >= 0)
                close(fd);
        return r ? tr_report_usage(invocation, "%s: %s", path, strerror(-r)) : 0;
}

static int append_file(struct tr_invocation *invocation, struct tr_writer *out, const char *path, bool as_json) {
        struct tr_writer content = TR_WRITER_INIT;
        char problem[TR_JSON_PROBLEM_MAX];
        struct troupe_value value;
        int r = read_file(invocation, path, &content);

        if (!r) {
                r = troupe_pack(&value, as_json ? "J" : "y", content.data, content.len);
                if (!r)
                        r = append(invocation, out, &value);
                else if (r == -ENOMEM)
                        r = tr_report_errno(invocation, r);
                else if (as_json && tr_json_problem((char *)content.data, content.len, problem))
                        r = tr_report_usage(invocation, "%s: %s", path, problem);
                else
                        r = tr_report_usage(invocation, "%s: that is too large", path);
        }
        tr_writer_deinit(&content);
        return r;
}

int tr_argument_read(struct tr_invocation *invocation, char ***at, char **end, struct tr_writer *out) {
        const char *word = *(*at)++;
        const char *next;

        if (!tr_argument_is_marked(word))
                return is_json(word) ? tr_argument_append_json(invocation, word, out) : append_string(invocation, out, word);
        if (*at == end)
                return tr_report_usage(invocation, "%s wants a value (as an ARG itself: -s %s)", word, word);
        next = *(*at)++;
        if (!strcmp(word, "-s"))
                return append_string(invocation, out, next);
        return append_file(invocation, out, next, !strcmp(word, "--json"));
}
