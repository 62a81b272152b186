/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task ls, show TASK, retry TASK, drop TASK: the tasks that the daemon keeps.
 */
#include <string.h>

#include "client/command/command.h"
#include "client/command/link.h"
#include "client/command/pairs.h"
#include "client/command/report.h"
#include "client/command/show.h"
#include "client/command/table.h"
#include "client/troupe.h"
#include "proto/code.h"

struct ls_options {
        const char *component;
        const char *state;
};

static const struct tr_option ls_options[] = {
        { "--component", TR_OPTION_TEXT, offsetof(struct ls_options, component) },
        { "--state", TR_OPTION_TEXT, offsetof(struct ls_options, state) },
        { 0 },
};

static const struct tr_column columns[] = {
        { "id", "TASK", TR_CELL_TEXT },           { "component", "COMPONENT", TR_CELL_TEXT },
        { "operation", "OPERATION", TR_CELL_TEXT }, { "state", "STATE", TR_CELL_TEXT },
        { "runs", "RUNS", TR_CELL_NUMBER },       { "due", "DUE", TR_CELL_DATE },
        { "key", "KEY", TR_CELL_TEXT },           { "cause", "CAUSE", TR_CELL_ERROR },
};

/* Asks for the tasks that the options, all of which may be absent (nil is), select. */
static int list(struct tr_invocation *invocation, const struct ls_options *which, struct tr_reply *reply) {
        int r, status = tr_link_open(invocation);

        if (status)
                return status;
        tr_link_be_plain(invocation);
        r = troupe_request_async(invocation->troupe, "tasks", tr_link_on_reply, reply, &reply->pending, "{ssss}",
                                 "component", which->component, "state", which->state);
        return tr_link_wait(invocation, r, reply);
}

static int run_ls(struct tr_invocation *invocation, const void *chosen) {
        struct tr_reply reply = { 0 };
        int status = list(invocation, chosen, &reply), r;

        if (!status && invocation->json)
                status = tr_show_answer(invocation, &reply.value, TR_SHOW_JSON);
        else if (!status && (r = tr_table_print(&reply.value, columns, sizeof(columns) / sizeof(columns[0]))))
                status = tr_report_errno(invocation, r);
        tr_reply_deinit(&reply);
        return status;
}

static bool has_id(const struct troupe_value *task, const char *id) {
        struct troupe_value value;
        const char *text;
        size_t len;

        return !troupe_value_get(task, "id", &value) && !troupe_value_string(&value, &text, &len) && len == strlen(id) &&
               !memcmp(text, id, len);
}

/* The one among them that the line names: *ret_task borrows from them. */
static bool find_task(const struct tr_invocation *invocation, const struct troupe_value *tasks, struct troupe_value *ret_task) {
        struct troupe_walk walk;

        if (troupe_walk_begin(&walk, tasks))
                return false;
        while (troupe_walk_next(&walk, NULL, ret_task) > 0)
                if (has_id(ret_task, invocation->words.operands[0]))
                        return true;
        return false;
}

static int report_no_task(const struct tr_invocation *invocation) {
        struct tr_problem problem = { 0 };
        int status;

        tr_problem_say(&problem, TR_EXIT_NOT_FOUND, tr_code_text(TR_CODE_NOT_FOUND), "there is no such task (any more)");
        status = tr_problem_report(&problem, invocation, 0);
        tr_problem_deinit(&problem);
        return status;
}

static int run_show(struct tr_invocation *invocation, const void *chosen) {
        const struct ls_options all = { 0 };
        struct tr_reply reply = { 0 };
        struct troupe_value task;
        int status = list(invocation, &all, &reply), r;

        if (!status && !find_task(invocation, &reply.value, &task))
                status = report_no_task(invocation);
        else if (!status && invocation->json)
                status = tr_show_answer(invocation, &task, TR_SHOW_JSON);
        else if (!status && (r = tr_pairs_print(&task)))
                status = tr_report_errno(invocation, r);
        tr_reply_deinit(&reply);
        return status;
}

/* What is asked of one task, and answered with nothing. */
static int request(struct tr_invocation *invocation, const char *method) {
        struct tr_reply reply = { 0 };
        int status = tr_link_open(invocation), r;

        if (status)
                return status;
        r = troupe_request_async(invocation->troupe, method, tr_link_on_reply, &reply, &reply.pending, "s",
                                 invocation->words.operands[0]);
        status = tr_link_wait(invocation, r, &reply);
        tr_reply_deinit(&reply);
        return status;
}

static int run_retry(struct tr_invocation *invocation, const void *chosen) {
        return request(invocation, "task-retry");
}

static int run_drop(struct tr_invocation *invocation, const void *chosen) {
        return request(invocation, "task-drop");
}

static const struct tr_command ls = {
        .name = "task ls",
        .usage = "[--component C] [--state S]",
        .summary = "list the tasks that are kept, the oldest first",
        .details = "  --component C  those of one component\n"
                   "  --state S      waiting, running or parked ones\n",
        .syntax = { .options = ls_options, .chosen_size = sizeof(struct ls_options) },
        .run = run_ls,
};

static const struct tr_command show = {
        .name = "task show",
        .usage = "TASK",
        .summary = "print all that is known about one, such as why it failed",
        .syntax = { .operands = { "TASK" }, .operands_min = 1 },
        .run = run_show,
};

static const struct tr_command retry = {
        .name = "task retry",
        .usage = "TASK",
        .summary = "have one run now, that is parked or waits",
        .syntax = { .operands = { "TASK" }, .operands_min = 1 },
        .run = run_retry,
};

static const struct tr_command drop = {
        .name = "task drop",
        .usage = "TASK",
        .summary = "forget one; where it is running, it is not tried again",
        .syntax = { .operands = { "TASK" }, .operands_min = 1 },
        .run = run_drop,
};

const struct tr_command *const tr_cmd_tasks[] = { &ls, &show, &retry, &drop, NULL };
