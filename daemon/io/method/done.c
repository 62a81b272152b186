/* SPDX-License-Identifier: Apache-2.0 */
/*
 * done target, {timeout?, reply?}?: nil once it has stopped, or how it failed.
 */
#include "config.h"

#include "daemon/io/method.h"

#include "daemon/core/message.h"
#include "daemon/core/target.h"
#include "daemon/io/chosen.h"
#include "daemon/io/connection.h"
#include "daemon/io/option.h"
#include "daemon/io/reply.h"

struct done_options {
        uint64_t timeout_ns;
        struct tr_chosen_options reply;
};

static const struct tr_option options[] = {
        { "timeout", TR_OPTION_TIME, offsetof(struct done_options, timeout_ns) },
        { "reply", TR_OPTION_CHOSEN, offsetof(struct done_options, reply) },
};

/* The target tells a message of a kind of its own, which is in no mailbox. */
static struct tr_failure *watch(struct tr_request *request, struct tr_target *target,
                                const struct done_options *chosen) {
        struct tr_message *message = tr_message_new(TR_MESSAGE_DONE, "", 0, NULL, 0, 0);
        if (!message)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the request");
        struct tr_failure *failure = chosen->reply.method.data ?
                                             tr_reply_expect(request, message, &chosen->reply, chosen->timeout_ns) :
                                             tr_request_expect(request, message, chosen->timeout_ns);
        if (failure)
                tr_message_unref(message);
        else
                tr_target_watch(target, message);
        return failure;
}

struct tr_failure *tr_method_done(struct tr_request *request) {
        struct done_options chosen = { .timeout_ns = request->connection->timeout_ns };
        struct tr_target *target = NULL;
        struct tr_failure *failure = TR_OPTIONS_READ(request, 1, options, &chosen);
        if (!failure)
                failure = tr_request_target(request, 0, &target);
        if (!failure && (request->wants_answer || chosen.reply.method.data))
                failure = watch(request, target, &chosen);
        tr_target_unref(target);
        return failure;
}
