/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn actor, args, {...}?: starts an actor in the connection's session; its handle, once its constructor has
 * returned, or how that failed.
 *
 * The constructor's message is the pending request. A cancel or a deadline settles it and kills the actor.
 */
#include "config.h"

#include "daemon/io/method.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/core/actor.h"
#include "daemon/core/session.h"
#include "daemon/core/system.h"
#include "daemon/io/connection.h"
#include "daemon/io/option.h"
#include "daemon/io/server_internal.h"
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

/* The texts of a request with a NUL behind each, for core. */
struct spawn_texts {
        char *actor;
        char *name;
        char *publish;
};

static void spawn_texts_deinit(struct spawn_texts *texts) {
        free(texts->actor);
        free(texts->name);
        free(texts->publish);
}

static struct tr_failure *no_memory(void) {
        return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the actor");
}

static struct tr_failure *read_request(struct tr_request *request, struct spawn_options *chosen,
                                       struct spawn_texts *texts, struct tr_message **ret_init) {
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
        if (failure)
                return failure;

        texts->actor = tr_text_copy(&actor);
        texts->name = tr_text_copy(&chosen->name);
        texts->publish = tr_text_copy(&chosen->publish);
        if (!texts->actor || (chosen->name.data && !texts->name) || (chosen->publish.data && !texts->publish))
                return no_memory();
        *ret_init = tr_message_new(TR_MESSAGE_INIT, "init", strlen("init"), args.data, args.bytes, args_count);
        return *ret_init ? NULL : no_memory();
}

/* Starts it. The request is pending before that, since it may be answered before this returns. */
static struct tr_failure *start(struct tr_request *request, const struct spawn_options *chosen,
                                const struct spawn_texts *texts, struct tr_message *init) {
        struct tr_connection *connection = request->connection;
        struct tr_system *system = connection->server->system;
        struct tr_session *session = chosen->detach ? system->daemon_session : tr_connection_session(connection);
        struct tr_actor_options actor_options = {
                .actor = texts->actor,
                .label = texts->name,
                .publish = texts->publish,
                .owner_uid = connection->peer.uid,
                .owner_pid = connection->peer.pid,
                .heap_bytes = chosen->heap_bytes,
                .mailbox = chosen->mailbox,
                .mailbox_bytes = chosen->mailbox_bytes,
                .async = chosen->async,
        };
        struct tr_target *target = NULL, *holder = NULL;
        if (!session)
                return no_memory();
        struct tr_failure *failure = tr_request_expect(request, init, connection->timeout_ns);
        if (failure)
                return failure;

        failure = tr_actor_spawn(system, session, &actor_options, tr_message_ref(init), &target, &holder);
        if (failure && request->deferred) {
                tr_connection_forget(connection, init);
                request->deferred = false;
        }
        if (failure && chosen->if_absent && holder) {
                tr_failure_unref(failure);
                failure = NULL;
                tr_response_write_handle(request->result, connection->form.values, &holder->handle);
        }
        tr_target_unref(holder);
        tr_target_unref(target);
        return failure;
}

struct tr_failure *tr_method_spawn(struct tr_request *request) {
        struct spawn_options chosen = { 0 };
        struct spawn_texts texts = { 0 };
        struct tr_message *init = NULL;
        struct tr_failure *failure = read_request(request, &chosen, &texts, &init);
        if (!failure)
                failure = start(request, &chosen, &texts, init);
        tr_message_unref(init);
        spawn_texts_deinit(&texts);
        return failure;
}
