/* SPDX-License-Identifier: Apache-2.0 */
/*
 * find NAME: prints the handle that is published under it; not-found where nobody holds it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "client/command/command.h"
#include "client/command/link.h"
#include "client/command/report.h"
#include "client/command/show.h"
#include "client/troupe.h"
#include "proto/code.h"

static int report_nobody(const struct tr_invocation *invocation) {
        struct tr_problem problem = { 0 };
        char *message = NULL;
        int status;

        if (asprintf(&message, "nobody holds the name `%s`", invocation->words.operands[0]) < 0)
                message = NULL;
        tr_problem_say(&problem, TR_EXIT_NOT_FOUND, tr_code_text(TR_CODE_NOT_FOUND),
                       message ? message : "nobody holds that name");
        status = tr_problem_report(&problem, invocation, 0);
        tr_problem_deinit(&problem);
        free(message);
        return status;
}

static int run(struct tr_invocation *invocation, const void *chosen) {
        struct tr_reply reply = { 0 };
        int status = tr_link_open(invocation), r;

        if (!status) {
                r = troupe_find_async(invocation->troupe, invocation->words.operands[0], tr_link_on_reply, &reply,
                                      &reply.pending);
                status = tr_link_wait(invocation, r, &reply);
        }
        if (!status)
                status = troupe_value_type(&reply.value) == TROUPE_NIL
                                 ? report_nobody(invocation)
                                 : tr_show_answer(invocation, &reply.value, TR_SHOW_JSON);
        tr_reply_deinit(&reply);
        return status;
}

const struct tr_command tr_cmd_find = {
        .name = "find",
        .usage = "NAME",
        .summary = "print the handle that is published under a name",
        .syntax = { .operands = { "NAME" }, .operands_min = 1 },
        .run = run,
};
