/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool NAME ACTOR [ARG...]: starts a pool of identical workers, detached, and prints its handle.
 */
#include <errno.h>
#include <string.h>

#include "client/command/command.h"
#include "client/command/link.h"
#include "client/command/message.h"
#include "client/command/report.h"
#include "client/command/show.h"
#include "client/troupe.h"

struct pool_options {
        uint64_t workers;
        const char *routing;
        const char *publish;
        bool if_absent;
        uint64_t heap_bytes;
};

static const struct tr_option options[] = {
        { "--workers", TR_OPTION_COUNT, offsetof(struct pool_options, workers) },
        { "--routing", TR_OPTION_TEXT, offsetof(struct pool_options, routing) },
        { "--publish", TR_OPTION_TEXT, offsetof(struct pool_options, publish) },
        { "--if-absent", TR_OPTION_FLAG, offsetof(struct pool_options, if_absent) },
        { "--heap", TR_OPTION_SIZE, offsetof(struct pool_options, heap_bytes) },
        { 0 },
};

/* The method's options: what was not chosen is nil there, as if it were absent. */
static int pack_options(const struct pool_options *pool, struct troupe_value *ret_options) {
        struct troupe_value nil = { "\xc0", 1 }, workers = nil, heap = nil;
        int r = pool->workers ? troupe_pack(&workers, "l", (int64_t)pool->workers) : 0;

        if (!r && pool->heap_bytes)
                r = troupe_pack(&heap, "l", (int64_t)pool->heap_bytes);
        if (!r)
                r = troupe_pack(ret_options, "{sv ss sv ss sb sb}", "workers", &workers, "routing", pool->routing, "heap", &heap,
                                "publish", pool->publish, "if_absent", pool->if_absent, "detach", 1);
        if (pool->workers)
                troupe_value_free(&workers);
        if (pool->heap_bytes)
                troupe_value_free(&heap);
        return r;
}

static int start(struct tr_invocation *invocation, const struct pool_options *pool) {
        const char *const *operands = invocation->words.operands;
        struct troupe_value args = { 0 }, chosen = { 0 };
        struct tr_reply reply = { 0 };
        char handle[TROUPE_HANDLE_SIZE];
        int status = tr_message_args(invocation, &args), r;

        if (!status) {
                r = pack_options(pool, &chosen);
                if (!r)
                        r = troupe_request_async(invocation->troupe, "pool", tr_link_on_reply, &reply, &reply.pending, "ss[*v]v",
                                                 operands[0], operands[1], &args, &chosen);
                status = tr_link_wait(invocation, r, &reply);
        }
        if (!status)
                status = troupe_value_handle(&reply.value, handle) ? tr_report_errno(invocation, -EBADMSG)
                                                                   : tr_show_text(invocation, handle);
        tr_reply_deinit(&reply);
        troupe_value_free(&chosen);
        troupe_value_free(&args);
        return status ? status : tr_show_end(invocation);
}

static int run(struct tr_invocation *invocation, const void *chosen) {
        int status = tr_link_open(invocation);

        return status ? status : start(invocation, chosen);
}

const struct tr_command tr_cmd_pool = {
        .name = "pool",
        .usage = "[--workers N] [--routing R] [--publish N] [--if-absent] [--heap S] NAME ACTOR [ARG...]",
        .summary = "start a pool of identical workers, and print its handle",
        .details = "  NAME          what it is called and published as\n"
                   "  ACTOR         module:Name, or module where it declares exactly one actor\n"
                   "  --workers N   how many (as many as there are CPUs)\n"
                   "  --routing R   round-robin (unless said otherwise), smallest-mailbox, random or shared\n"
                   "  --publish N   publish it under another name\n"
                   "  --if-absent   print the handle of whoever holds the name, if somebody does\n"
                   "  --heap S      bytes that each worker's heap may grow to (64M)\n",
        .syntax = { options, sizeof(struct pool_options), { "NAME", "ACTOR" }, 2, true },
        .run = run,
};
