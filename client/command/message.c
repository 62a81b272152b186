/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command/message.h"

#include <errno.h>
#include <string.h>

#include "client/command/command.h"
#include "client/command/report.h"

int tr_message_form(const struct tr_invocation *invocation, bool lines, bool json_lines,
                    enum tr_message_form *ret_form) {
        if (lines && json_lines)
                return tr_report_usage(invocation, "--lines and --json-lines exclude each other");
        if ((lines || json_lines) && invocation->words.args_count)
                return tr_report_usage(invocation, "with %s the arguments come from standard input",
                                       lines ? "--lines" : "--json-lines");
        *ret_form = lines ? TR_MESSAGE_LINES : json_lines ? TR_MESSAGE_JSON_LINES : TR_MESSAGE_ARGS;
        return 0;
}

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

int tr_message_line(enum tr_message_form form, const char *line, size_t len, struct troupe_value *ret_args) {
        return troupe_pack(ret_args, form == TR_MESSAGE_LINES ? "[S]" : "[*J]", line, len);
}

const char *tr_message_line_problem(int r) {
        switch (r) {
        case -EINVAL:
                return "that is not a JSON array of arguments";
        case -ERANGE:
                return "a number does not fit in 64 bits";
        default:
                return strerror(-r);
        }
}
