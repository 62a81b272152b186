/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn actor, args, {...}?: starts an actor in the connection's session; its handle, once its constructor has
 * returned, or how that failed.
 */
#include "config.h"

#include "daemon/io/method.h"

#include <string.h>

#include "daemon/core/actor.h"
#include "daemon/io/connection.h"
#include "daemon/io/option.h"
#include "daemon/io/start.h"
#include "proto/name.h"

struct spawn_options {
        uint64_t heap_bytes;
        uint32_t mailbox;
        uint64_t mailbox_bytes;
        uint32_t async;
        struct tr_text name;
        bool detach;
        struct tr_text publish;
        bool if_absent;
};

static const struct tr_option options[] = {
        { "heap", TR_OPTION_SIZE, offsetof(struct spawn_options, heap_bytes) },
        { "mailbox", TR_OPTION_COUNT, offsetof(struct spawn_options, mailbox) },
        { "mailbox_bytes", TR_OPTION_SIZE, offsetof(struct spawn_options, mailbox_bytes) },
        { "async", TR_OPTION_COUNT, offsetof(struct spawn_options, async) },
        { "name", TR_OPTION_TEXT, offsetof(struct spawn_options, name) },
        { "detach", TR_OPTION_BOOL, offsetof(struct spawn_options, detach) },
        { "publish", TR_OPTION_NAME, offsetof(struct spawn_options, publish) },
        { "if_absent", TR_OPTION_BOOL, offsetof(struct spawn_options, if_absent) },
};

static struct tr_failure *read_request(struct tr_request *request, struct spawn_options *chosen,
                                       struct tr_start_texts *texts, struct tr_message **ret_init) {
        struct tr_text actor = { 0 };
        size_t module_len;
        struct tr_span args;
        uint32_t args_count;
        struct tr_failure *failure = tr_request_text(request, 0, &actor.data, &actor.len);
        if (!failure && !tr_actor_name_is_valid(actor.data, actor.len, &module_len))
                failure = tr_request_bad_param(request, 0, "an actor: \"module\" or \"module:Name\"");
        if (!failure)
                failure = tr_request_array(request, 1, &args, &args_count);
        if (!failure)
                failure = TR_OPTIONS_READ(request, 2, options, chosen);
        if (!failure)
                failure = tr_option_check_heap(request, chosen->heap_bytes);
        if (!failure && chosen->if_absent && !chosen->publish.data)
                failure = tr_failure_new(TR_CODE_BAD_REQUEST, "spawn: the option if_absent needs publish");
        if (!failure && chosen->publish.data)
                failure = tr_request_check_name(request, chosen->publish.data, chosen->publish.len);
        if (failure)
                return failure;

        failure = tr_start_texts_copy(texts, &actor, &chosen->name, &chosen->publish);
        if (failure)
                return failure;
        *ret_init = tr_message_new(TR_MESSAGE_INIT, "init", strlen("init"), args.data, args.bytes, args_count);
        return NULL;
}

static struct tr_failure *start_actor(struct tr_system *system, struct tr_session *session, const void *chosen,
                                      struct tr_message *take_message, struct tr_target **ret_target,
                                      struct tr_target **ret_holder) {
        return tr_actor_spawn(system, session, chosen, take_message, ret_target, ret_holder);
}

static struct tr_failure *start(struct tr_request *request, const struct spawn_options *chosen,
                                const struct tr_start_texts *texts, struct tr_message *init) {
        const struct tr_peer *peer = &request->connection->peer;
        const struct tr_actor_options actor = {
                .actor = texts->actor,
                .label = texts->name,
                .publish = texts->publish,
                .owner_uid = peer->uid,
                .owner_pid = peer->pid,
                .heap_bytes = chosen->heap_bytes,
                .mailbox = chosen->mailbox,
                .mailbox_bytes = chosen->mailbox_bytes,
                .async = chosen->async,
        };
        return tr_start(request, start_actor, &actor, chosen->detach, chosen->if_absent, init);
}

struct tr_failure *tr_method_spawn(struct tr_request *request) {
        struct spawn_options chosen = { 0 };
        struct tr_start_texts texts = { 0 };
        struct tr_message *init = NULL;
        struct tr_failure *failure = read_request(request, &chosen, &texts, &init);
        if (!failure)
                failure = start(request, &chosen, &texts, init);
        tr_message_unref(init);
        tr_start_texts_deinit(&texts);
        return failure;
}
