/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How errors are told.
 *
 * One line with the program, the command, the code and a sentence, so that a script can match the code; a traceback
 * follows where there is one. The exit code comes from the same table as the code itself (proto/code.h). An unknown
 * code, which a newer daemon may send, is judged by what it says of `ran`: whether it is safe to try again.
 */
#include "client/command/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/command/command.h"
#include "client/command/printable.h"
#include "proto/code.h"

/* "troupe: " or "troupe: ask: " */
static void print_prefix(const struct tr_invocation *invocation) {
        if (invocation->command)
                fprintf(stderr, "troupe: %s: ", invocation->command->name);
        else
                fputs("troupe: ", stderr);
}

int tr_report_usage(const struct tr_invocation *invocation, const char *format, ...) {
        va_list args;

        print_prefix(invocation);
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        if (invocation->command)
                fprintf(stderr, "\nusage: troupe %s %s\n", invocation->command->name, invocation->command->usage);
        else
                fputs("\nusage: troupe [OPTION...] COMMAND; `troupe help` lists them\n", stderr);
        return TR_EXIT_USAGE;
}

int tr_report_no_command(const struct tr_invocation *invocation, const char *name) {
        return tr_report_usage(invocation, "there is no command `%s`", name);
}

int tr_report_errno(const struct tr_invocation *invocation, int r) {
        print_prefix(invocation);
        fprintf(stderr, "%s\n", strerror(-r));
        return TR_EXIT_FAILED;
}

int tr_report_file(const struct tr_invocation *invocation, const char *path, int r) {
        print_prefix(invocation);
        fprintf(stderr, "%s: %s\n", path, strerror(-r));
        return TR_EXIT_FAILED;
}

int tr_report_no_daemon(const struct tr_invocation *invocation, const char *paths, int r) {
        print_prefix(invocation);
        fprintf(stderr, "%s: no daemon answers at %s: %s\n", tr_code_text(TR_CODE_DISCONNECTED), paths, strerror(-r));
        return TR_EXIT_NO_DAEMON;
}

static int exit_of(const struct troupe_error *error) {
        enum tr_code code;

        if (tr_code_parse(error->code, strlen(error->code), &code))
                return tr_code_exit(code);
        return error->ran == TROUPE_RAN_NO ? tr_code_exit(TR_CODE_BUSY) : tr_code_exit(TR_CODE_FAULT);
}

/* A member of the error that is text; NULL where there is none. */
static char *copy_detail(const struct troupe_error *error, const char *key) {
        struct troupe_value value;
        const char *text;
        size_t len;

        if (troupe_value_get(&error->details, key, &value) || troupe_value_string(&value, &text, &len))
                return NULL;
        return strndup(text, len);
}

void tr_problem_say(struct tr_problem *problem, int exit, const char *code, const char *message) {
        tr_problem_deinit(problem);
        problem->is_set = true;
        problem->exit = exit;
        problem->code = strdup(code);
        problem->message = strdup(message);
}

void tr_problem_set(struct tr_problem *problem, const struct troupe *troupe, int result) {
        const struct troupe_error *error = result == -EREMOTEIO ? troupe_error(troupe) : NULL;
        bool is_disconnected =
                result == -ENOTCONN || (error && !strcmp(error->code, tr_code_text(TR_CODE_DISCONNECTED)));
        char *message;

        if (is_disconnected &&
            asprintf(&message, "the connection to the daemon at %s broke", troupe_path(troupe)) >= 0) {
                tr_problem_say(problem, tr_code_exit(TR_CODE_DISCONNECTED), tr_code_text(TR_CODE_DISCONNECTED),
                               message);
                free(message);
        } else if (error) {
                tr_problem_say(problem, exit_of(error), error->code, error->message);
                problem->traceback = copy_detail(error, "traceback");
        } else {
                tr_problem_say(problem, TR_EXIT_FAILED,
                               tr_code_text(result == -ENOMEM ? TR_CODE_NO_MEMORY : TR_CODE_INTERNAL),
                               strerror(-result));
        }
}

/* What an actor's code may have chosen. */
static void print_foreign(const char *text) {
        bool is_terminal = isatty(STDERR_FILENO);
        char *copy = is_terminal ? strdup(text) : NULL;

        if (copy)
                tr_printable(copy, "\n\t");
        fprintf(stderr, "%s\n", copy ? copy : is_terminal ? strerror(ENOMEM) : text);
        free(copy);
}

int tr_problem_report(const struct tr_problem *problem, const struct tr_invocation *invocation, uint64_t line) {
        print_prefix(invocation);
        fprintf(stderr, "%s: ", problem->code ? problem->code : tr_code_text(TR_CODE_NO_MEMORY));
        if (line)
                fprintf(stderr, "line %llu: ", (unsigned long long)line);
        print_foreign(problem->message ? problem->message : strerror(ENOMEM));
        if (problem->traceback && *problem->traceback)
                print_foreign(problem->traceback);
        return problem->exit;
}

void tr_problem_deinit(struct tr_problem *problem) {
        free(problem->code);
        free(problem->message);
        free(problem->traceback);
        *problem = (struct tr_problem){ 0 };
}
