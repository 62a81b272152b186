/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask target, handler, args, {timeout?, trace?, reply?}?: what the handler answers.
 */
#include "config.h"

#include "daemon/io/method.h"

#include "daemon/io/chosen.h"
#include "daemon/io/connection.h"
#include "daemon/io/option.h"
#include "daemon/io/post.h"

struct ask_options {
        uint64_t timeout_ns;
        struct tr_chosen_options reply;
        struct tr_text trace; /* W3C's traceparent: passed on by component calls, which an ask is none of */
};

static const struct tr_option options[] = {
        { "timeout", TR_OPTION_TIME, offsetof(struct ask_options, timeout_ns) },
        { "reply", TR_OPTION_CHOSEN, offsetof(struct ask_options, reply) },
        { "trace", TR_OPTION_TEXT, offsetof(struct ask_options, trace) },
};

struct tr_failure *tr_method_ask(struct tr_request *request) {
        struct ask_options chosen = { .timeout_ns = request->connection->timeout_ns };
        struct tr_failure *failure = TR_OPTIONS_READ(request, 3, options, &chosen);
        return failure ? failure : tr_post_ask(request, chosen.timeout_ns, &chosen.reply);
}
