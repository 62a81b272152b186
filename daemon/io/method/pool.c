/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool name, actor, args, {...}?: starts a pool of workers in the connection's session; its handle, once the first worker's
 * constructor has returned, or how the last one failed where all first ones do.
 */
#include "config.h"

#include "daemon/io/method.h"

#include <string.h>

#include "daemon/core/pool.h"
#include "daemon/io/connection.h"
#include "daemon/io/option.h"
#include "daemon/io/start.h"
#include "proto/name.h"

struct pool_options {
        uint32_t workers;
        struct tr_text routing;
        uint32_t queue;
        uint64_t heap_bytes;
        uint32_t mailbox;
        uint64_t mailbox_bytes;
        uint32_t async;
        struct tr_backoff_options backoff;
        bool detach;
        struct tr_text publish;
        bool if_absent;
};

static const struct tr_option options[] = {
        { "workers", TR_OPTION_COUNT, offsetof(struct pool_options, workers) },
        { "routing", TR_OPTION_TEXT, offsetof(struct pool_options, routing) },
        { "queue", TR_OPTION_COUNT, offsetof(struct pool_options, queue) },
        { "heap", TR_OPTION_SIZE, offsetof(struct pool_options, heap_bytes) },
        { "mailbox", TR_OPTION_COUNT, offsetof(struct pool_options, mailbox) },
        { "mailbox_bytes", TR_OPTION_SIZE, offsetof(struct pool_options, mailbox_bytes) },
        { "async", TR_OPTION_COUNT, offsetof(struct pool_options, async) },
        { "backoff", TR_OPTION_BACKOFF, offsetof(struct pool_options, backoff) },
        { "detach", TR_OPTION_BOOL, offsetof(struct pool_options, detach) },
        { "publish", TR_OPTION_NAME, offsetof(struct pool_options, publish) },
        { "if_absent", TR_OPTION_BOOL, offsetof(struct pool_options, if_absent) },
};

static struct tr_failure *bad_option(const char *what) {
        return tr_failure_new(TR_CODE_BAD_REQUEST, "pool: the option %s", what);
}

/* What the types of the options do not say. */
static struct tr_failure *check_options(const struct tr_request *request, const struct pool_options *chosen,
                                        struct tr_pool_options *pool) {
        if (chosen->workers > TR_POOL_WORKERS_MAX)
                return bad_option("workers has to be a whole number from 1 to 1024");
        if (chosen->routing.data && !tr_routing_parse(chosen->routing.data, chosen->routing.len, &pool->routing))
                return bad_option("routing has to be round-robin, smallest-mailbox, random or shared");
        if (!tr_pool_backoff_is_valid(pool))
                return bad_option("backoff.max has to be at least backoff.min");
        return tr_option_check_heap(request, chosen->heap_bytes);
}

/* The one that it is published under. */
static struct tr_failure *check_name(const struct tr_request *request, const struct tr_text *name, const struct tr_text *publish) {
        const struct tr_text *published = publish->data ? publish : name;
        return tr_request_check_name(request, published->data, published->len);
}

static struct tr_failure *read_request(struct tr_request *request, struct pool_options *chosen, struct tr_start_texts *texts,
                                       struct tr_pool_options *pool) {
        struct tr_text name = { 0 }, actor = { 0 };
        size_t module_len;
        struct tr_span args = { 0 };
        struct tr_failure *failure = tr_request_name(request, 0, &name.data, &name.len);
        if (!failure)
                failure = tr_request_text(request, 1, &actor.data, &actor.len);
        if (!failure && !tr_actor_name_is_valid(actor.data, actor.len, &module_len))
                failure = tr_request_bad_param(request, 1, "an actor: \"module\" or \"module:Name\"");
        if (!failure)
                failure = tr_request_array(request, 2, &args, &pool->args_count);
        if (!failure)
                failure = TR_OPTIONS_READ(request, 3, options, chosen);
        pool->backoff_min_ns = chosen->backoff.min_ns;
        pool->backoff_max_ns = chosen->backoff.max_ns;
        pool->backoff_reset_ns = chosen->backoff.reset_ns;
        if (!failure)
                failure = check_options(request, chosen, pool);
        if (!failure)
                failure = check_name(request, &name, &chosen->publish);
        if (failure)
                return failure;

        failure = tr_start_texts_copy(texts, &actor, &name, &chosen->publish);
        if (failure)
                return failure;
        pool->name = texts->name;
        pool->actor = texts->actor;
        pool->publish = texts->publish;
        pool->args = args.data;
        pool->args_bytes = args.bytes;
        pool->owner_uid = request->connection->peer.uid;
        pool->owner_pid = request->connection->peer.pid;
        pool->workers = chosen->workers;
        pool->queue = chosen->queue;
        pool->heap_bytes = chosen->heap_bytes;
        pool->mailbox = chosen->mailbox;
        pool->mailbox_bytes = chosen->mailbox_bytes;
        pool->async = chosen->async;
        return NULL;
}

static struct tr_failure *start_pool(struct tr_system *system, struct tr_session *session, const void *chosen,
                                     struct tr_message *take_message, struct tr_target **ret_target,
                                     struct tr_target **ret_holder) {
        return tr_pool_start(system, session, chosen, take_message, ret_target, ret_holder);
}

struct tr_failure *tr_method_pool(struct tr_request *request) {
        struct pool_options chosen = { 0 };
        struct tr_start_texts texts = { 0 };
        struct tr_pool_options pool = { 0 };
        struct tr_failure *failure = read_request(request, &chosen, &texts, &pool);
        if (!failure) {
                struct tr_message *message = tr_message_new(TR_MESSAGE_INIT, "init", strlen("init"), NULL, 0, 0);
                failure = tr_start(request, start_pool, &pool, chosen.detach, chosen.if_absent, message);
                tr_message_unref(message);
        }
        tr_start_texts_deinit(&texts);
        return failure;
}
