/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command/message.h"

#include <errno.h>
#include <string.h>

#include "client/command/command.h"
#include "client/command/link.h"
#include "client/json.h"
#include "proto/code.h"

int tr_message_args(const struct tr_invocation *invocation, struct troupe_value *ret_args) {
        struct tr_writer writer = TR_WRITER_INIT;
        size_t size;

        tr_write_array(&writer, invocation->words.args_count);
        tr_write_raw(&writer, invocation->words.args.data, invocation->words.args.len);
        if (tr_writer_error(&writer)) {
                tr_writer_deinit(&writer);
                return tr_report_errno(invocation, -ENOMEM);
        }
        ret_args->data = tr_writer_steal(&writer, &size);
        ret_args->size = size;
        return 0;
}

static int read_form(const struct tr_invocation *invocation, const struct tr_message_options *options,
                     enum tr_message_form *ret_form) {
        if (options->lines && options->json_lines)
                return tr_report_usage(invocation, "--lines and --json-lines exclude each other");
        if ((options->lines || options->json_lines) && invocation->words.args_count)
                return tr_report_usage(invocation, "with %s the arguments come from standard input",
                                       options->lines ? "--lines" : "--json-lines");
        *ret_form = options->lines ? TR_MESSAGE_LINES : options->json_lines ? TR_MESSAGE_JSON_LINES : TR_MESSAGE_ARGS;
        return 0;
}

int tr_message_begin(struct tr_invocation *invocation, const struct tr_message_options *options,
                     enum tr_message_form *ret_form, struct troupe_value *ret_args) {
        int status = read_form(invocation, options, ret_form);

        if (!status && *ret_form == TR_MESSAGE_ARGS)
                status = tr_message_args(invocation, ret_args);
        return status ? status : tr_link_open(invocation);
}

void tr_message_problem(struct tr_problem *problem, const char *line, size_t len) {
        char why[TR_JSON_PROBLEM_MAX];

        if (!tr_json_problem(line, len, why))
                strcpy(why, "that is not a JSON array of arguments");
        tr_problem_say(problem, TR_EXIT_USAGE, tr_code_text(TR_CODE_BAD_REQUEST), why);
}
