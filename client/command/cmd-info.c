/* SPDX-License-Identifier: Apache-2.0 */
/*
 * info TARGET: everything that is known about one actor, a line for each.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/command.h"
#include "client/command/link.h"
#include "client/command/report.h"
#include "client/command/show.h"
#include "client/command/table.h"
#include "client/troupe.h"

/* Keys whose number is one of bytes. */
static enum tr_cell cell_of(const char *key, size_t len) {
        static const char *const bytes[] = { "heap", "heap_max", "mailbox_bytes", "mailbox_bytes_max" };

        for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
                if (strlen(bytes[i]) == len && !memcmp(bytes[i], key, len))
                        return TR_CELL_BYTES;
        return TR_CELL_TEXT;
}

/* A handler as "work/2" (what it takes), "async work/2". */
static void print_handler(const struct troupe_value *handler) {
        struct troupe_value value;
        int64_t params;
        int is_async;
        char *name;

        if (!troupe_value_get(handler, "async", &value) && !troupe_value_bool(&value, &is_async) && is_async)
                fputs("async ", stdout);
        name = troupe_value_get(handler, "name", &value) ? NULL : tr_cell_text(&value, TR_CELL_TEXT);
        fputs(name ? name : "?", stdout);
        free(name);
        if (!troupe_value_get(handler, "params", &value) && !troupe_value_int(&value, &params))
                printf("/%" PRId64, params);
}

/* True where it was a list of handlers. */
static bool print_handlers(const struct troupe_value *handlers) {
        struct troupe_value handler, name;
        struct troupe_walk walk;
        const char *before = "";

        if (troupe_value_type(handlers) != TROUPE_ARRAY || troupe_walk_begin(&walk, handlers))
                return false;
        while (troupe_walk_next(&walk, NULL, &handler) > 0) {
                if (troupe_value_get(&handler, "name", &name))
                        continue;
                fputs(before, stdout);
                print_handler(&handler);
                before = ", ";
        }
        putchar('\n');
        return true;
}

static int print_pair(const struct troupe_value *key, const struct troupe_value *value, int width) {
        const char *name;
        size_t len;
        char *text;

        if (troupe_value_string(key, &name, &len))
                return 0;
        printf("%-*.*s  ", width, (int)len, name);
        if (len == strlen("handlers") && !memcmp(name, "handlers", len) && print_handlers(value))
                return 0;
        text = tr_cell_text(value, cell_of(name, len));
        if (!text)
                return -ENOMEM;
        puts(text);
        free(text);
        return 0;
}

static int print_pairs(const struct troupe_value *map) {
        struct troupe_value key, value;
        struct troupe_walk walk;
        const char *name;
        size_t len, width = 0;
        int r = troupe_walk_begin(&walk, map);

        if (r || !walk.is_map)
                return -EBADMSG;
        while ((r = troupe_walk_next(&walk, &key, &value)) > 0)
                if (!troupe_value_string(&key, &name, &len) && len > width)
                        width = len;
        if (!r)
                r = troupe_walk_begin(&walk, map);
        while (!r && (r = troupe_walk_next(&walk, &key, &value)) > 0)
                r = print_pair(&key, &value, width);
        return r;
}

static int run(struct tr_invocation *invocation, const void *chosen) {
        struct tr_reply reply = { 0 };
        int status = tr_link_open(invocation), r;

        if (!status) {
                tr_link_be_plain(invocation);
                r = troupe_request_async(invocation->troupe, "info", tr_link_on_reply, &reply, &reply.pending, "s",
                                         invocation->words.operands[0]);
                status = tr_link_wait(invocation, r, &reply);
        }
        if (!status && invocation->json)
                status = tr_show_answer(invocation, &reply.value, TR_SHOW_JSON);
        else if (!status && (r = print_pairs(&reply.value)))
                status = tr_report_errno(invocation, r);
        tr_reply_deinit(&reply);
        return status;
}

const struct tr_command tr_cmd_info = {
        .name = "info",
        .usage = "TARGET",
        .summary = "print what is known about an actor",
        .syntax = { .operands = { "TARGET" }, .operands_min = 1 },
        .run = run,
};
