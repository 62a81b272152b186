/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ls [actors|pools|components]: what is running.
 */
#include <string.h>

#include "client/command/command.h"
#include "client/command/link.h"
#include "client/command/report.h"
#include "client/command/show.h"
#include "client/command/table.h"
#include "client/troupe.h"

static const struct tr_column columns[] = {
        { "handle", "HANDLE", TR_CELL_TEXT },       { "kind", "KIND", TR_CELL_TEXT },
        { "name", "NAME", TR_CELL_TEXT },           { "published", "PUBLISHED", TR_CELL_TEXT },
        { "state", "STATE", TR_CELL_TEXT },         { "mailbox", "MAILBOX", TR_CELL_NUMBER },
        { "messages", "MESSAGES", TR_CELL_NUMBER }, { "heap", "HEAP", TR_CELL_BYTES },
        { "actor", "ACTOR", TR_CELL_TEXT },
};

static const char *const kinds[] = { "actors", "pools", "components", NULL };

static int list(struct tr_invocation *invocation, struct tr_reply *reply) {
        const char *word = invocation->words.operands[0];
        int r, status = tr_link_open(invocation);

        if (status)
                return status;
        tr_link_be_plain(invocation);
        /* the protocol has the singular of each */
        r = troupe_request_async(invocation->troupe, "list", tr_link_on_reply, reply, &reply->pending,
                                 word ? "{sS}" : "", "kind", word, word ? strlen(word) - 1 : 0);
        return tr_link_wait(invocation, r, reply);
}

static int run(struct tr_invocation *invocation, const void *chosen) {
        struct tr_reply reply = { 0 };
        int status = list(invocation, &reply), r;

        if (!status && invocation->json)
                status = tr_show_answer(invocation, &reply.value, TR_SHOW_JSON);
        else if (!status && (r = tr_table_print(&reply.value, columns, sizeof(columns) / sizeof(columns[0]))))
                status = tr_report_errno(invocation, r);
        tr_reply_deinit(&reply);
        return status;
}

const struct tr_command tr_cmd_ls = {
        .name = "ls",
        .usage = "[actors | pools | components]",
        .summary = "list what is running",
        .syntax = { .operands = { "KIND" }, .choices = kinds },
        .run = run,
};
