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

/* What the protocol calls one of what the command lists many of. NULL: neither. */
static const char *kind_of(const char *word) {
        return !strcmp(word, "actors")       ? "actor"
               : !strcmp(word, "pools")      ? "pool"
               : !strcmp(word, "components") ? "component"
                                             : NULL;
}

static int list(struct tr_invocation *invocation, const char *kind, struct tr_reply *reply) {
        int r, status = tr_link_open(invocation);

        if (status)
                return status;
        tr_link_be_plain(invocation);
        r = troupe_request_async(invocation->troupe, "list", tr_link_on_reply, reply, &reply->pending,
                                 kind ? "{ss}" : "", "kind", kind);
        return tr_link_wait(invocation, r, reply);
}

static int run(struct tr_invocation *invocation, const void *chosen) {
        const char *word = invocation->words.operands[0];
        const char *kind = word ? kind_of(word) : NULL;
        struct tr_reply reply = { 0 };
        int status, r;

        if (word && !kind)
                return tr_report_usage(invocation, "`%s` is none of actors, pools and components", word);
        status = list(invocation, kind, &reply);
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
        .syntax = { .operands = { "KIND" } },
        .run = run,
};
