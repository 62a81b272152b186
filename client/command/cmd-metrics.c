/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics: what the daemon has counted, as OpenMetrics text, on standard output or in a file.
 */
#include <errno.h>

#include "client/command/command.h"
#include "client/command/link.h"
#include "client/command/replace.h"
#include "client/command/report.h"
#include "client/command/show.h"
#include "client/troupe.h"

struct metrics_options {
        const char *file;
};

static const struct tr_option options[] = {
        { "--write", TR_OPTION_PATH, offsetof(struct metrics_options, file) },
        { 0 },
};

static int put(struct tr_invocation *invocation, const struct troupe_value *value, const char *file) {
        const char *text;
        size_t len;
        int r;

        if (troupe_value_string(value, &text, &len))
                return tr_report_errno(invocation, -EBADMSG);
        if (!file)
                return tr_show_answer(invocation, value, TR_SHOW_RAW);
        r = tr_replace_file(file, text, len);
        return r ? tr_report_file(invocation, file, r) : 0;
}

static int run(struct tr_invocation *invocation, const void *chosen) {
        const struct metrics_options *metrics = chosen;
        struct tr_reply reply = { 0 };
        int status = tr_link_open(invocation), r;

        if (!status) {
                r = troupe_request_async(invocation->troupe, "metrics", tr_link_on_reply, &reply, &reply.pending, NULL);
                status = tr_link_wait(invocation, r, &reply);
        }
        if (!status)
                status = put(invocation, &reply.value, metrics->file);
        tr_reply_deinit(&reply);
        return status ? status : tr_show_end(invocation);
}

const struct tr_command tr_cmd_metrics = {
        .name = "metrics",
        .usage = "[--write FILE]",
        .summary = "print what the daemon has counted, as OpenMetrics text",
        .details = "  --write FILE  into a file, which is replaced in one step: who reads it has the old text or the new one\n",
        .syntax = { options, sizeof(struct metrics_options) },
        .run = run,
};
