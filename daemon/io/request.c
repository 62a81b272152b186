/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the parameters of a request. The frame scanner has been over them: what is read here is well formed, so
 * lengths and counts may be trusted, and only types are judged.
 */
#include "config.h"

#include "daemon/io/request.h"

#include "daemon/core/component.h"
#include "daemon/core/message.h"
#include "daemon/core/registry.h"
#include "daemon/core/system.h"
#include "daemon/core/target.h"
#include "daemon/io/connection.h"
#include "daemon/io/method.h"
#include "daemon/io/server_internal.h"
#include "proto/name.h"

static struct tr_failure *params_number_failure(const struct tr_method *method) {
        if (method->params_min == method->params_max)
                return tr_failure_new(TR_CODE_BAD_REQUEST, "%s takes %u params: %s", method->name, method->params_min,
                                      method->params_max ? method->usage : "none");
        return tr_failure_new(TR_CODE_BAD_REQUEST, "%s takes %u to %u params: %s", method->name, method->params_min,
                              method->params_max, method->usage);
}

/* The last of the params is not walked through: it ends where they end. */
static bool read_param(struct tr_reader *reader, bool last, struct tr_param *ret_param) {
        const uint8_t *begin = reader->at;
        struct tr_reader behind_head = *reader;
        if (tr_read(&behind_head, &ret_param->token) != 0)
                return false;
        bool is_container = ret_param->token.type == TR_ARRAY || ret_param->token.type == TR_MAP;
        if (last)
                reader->at = reader->end;
        else if (!is_container)
                *reader = behind_head;
        else if (tr_read_skip(reader) != 0)
                return false;
        ret_param->span = (struct tr_span){ begin, (size_t)(reader->at - begin) };
        ret_param->items = behind_head.at;
        return true;
}

struct tr_failure *tr_request_read_params(struct tr_request *request, const struct tr_span *params) {
        const struct tr_method *method = request->method;
        struct tr_reader reader = tr_reader(params->data, params->bytes);
        struct tr_token head;

        if (tr_read(&reader, &head) != 0 || head.type != TR_ARRAY)
                return tr_failure_new(TR_CODE_BAD_REQUEST, "params have to be an array");
        if (head.count < method->params_min || head.count > method->params_max)
                return params_number_failure(method);
        for (uint32_t i = 0; i < head.count; i++)
                if (!read_param(&reader, i + 1 == head.count, &request->params[i]))
                        return tr_failure_new(TR_CODE_INTERNAL, "params that were scanned cannot be read");
        request->count = head.count;
        while (request->count > method->params_min && request->params[request->count - 1].token.type == TR_NIL)
                request->count--;
        return NULL;
}

struct tr_failure *tr_request_bad_param(const struct tr_request *request, uint32_t index, const char *wanted) {
        return tr_failure_new(TR_CODE_BAD_REQUEST, "%s: param %u has to be %s (%s %s)", request->method->name,
                              index + 1, wanted, request->method->name, request->method->usage);
}

struct tr_failure *tr_request_text(const struct tr_request *request, uint32_t index, const char **ret_text,
                                   size_t *ret_len) {
        const struct tr_token *token = &request->params[index].token;
        if (!tr_token_is_text(token))
                return tr_request_bad_param(request, index, "a string");
        *ret_text = (const char *)token->data;
        *ret_len = token->len;
        return NULL;
}

struct tr_failure *tr_request_name(const struct tr_request *request, uint32_t index, const char **ret_name,
                                   size_t *ret_len) {
        const char *name;
        size_t len;
        struct tr_failure *failure = tr_request_text(request, index, &name, &len);
        if (failure)
                return failure;
        if (!tr_name_is_valid(name, len))
                return tr_request_bad_param(request, index, "a name");
        *ret_name = name;
        *ret_len = len;
        return NULL;
}

struct tr_failure *tr_request_array(const struct tr_request *request, uint32_t index, struct tr_span *ret_elements,
                                    uint32_t *ret_count) {
        const struct tr_param *param = &request->params[index];
        if (param->token.type != TR_ARRAY)
                return tr_request_bad_param(request, index, "an array");
        *ret_elements = (struct tr_span){ param->items, (size_t)(param->span.data + param->span.bytes - param->items) };
        *ret_count = param->token.count;
        return NULL;
}

struct tr_failure *tr_request_check_name(const struct tr_request *request, const char *name, size_t len) {
        if (tr_access_allows_name(request->connection, name, len))
                return NULL;
        return tr_failure_new(TR_CODE_DENIED, "%s: access to the name %.*s is not granted", request->method->name, (int)len,
                              name);
}

static struct tr_failure *find_handle(struct tr_registry *registry, const struct tr_handle *handle,
                                      struct tr_target **ret_target) {
        struct tr_target *target = tr_registry_find(registry, handle);
        if (!target)
                return tr_failure_new(TR_CODE_NOT_RUNNING, "the %s is not running",
                                      tr_handle_is_pool(handle) ? "pool" : "actor");
        *ret_target = target;
        return NULL;
}

static struct tr_failure *find_name(struct tr_registry *registry, const char *name, size_t len,
                                    struct tr_target **ret_target) {
        struct tr_target *target = tr_registry_find_name(registry, name, len);
        if (!target && tr_registry_is_held(registry, name, len))
                return tr_failure_new(TR_CODE_NOT_RUNNING, "the actor is not running");
        if (!target)
                return tr_failure_new(TR_CODE_NOT_FOUND, "nothing is published under the name %.*s", (int)len, name);
        *ret_target = target;
        return NULL;
}

struct tr_failure *tr_request_target(const struct tr_request *request, uint32_t index, struct tr_target **ret_target) {
        struct tr_registry *registry = &request->connection->server->system->registry;
        const struct tr_token *token = &request->params[index].token;
        struct tr_handle handle;

        if (token->type == TR_EXT && token->ext == TR_EXT_HANDLE && token->len == sizeof(handle.bytes)) {
                for (size_t i = 0; i < sizeof(handle.bytes); i++)
                        handle.bytes[i] = token->data[i];
                return find_handle(registry, &handle, ret_target);
        }
        if (tr_token_is_text(token)) {
                const char *text = (const char *)token->data;
                if (tr_handle_parse(text, token->len, &handle))
                        return find_handle(registry, &handle, ret_target);
                if (tr_handle_has_form(text, token->len))
                        return tr_failure_new(TR_CODE_NOT_RUNNING, "the %s is not running",
                                              text[0] == 'p' ? "pool" : "actor");
                if (tr_name_is_valid(text, token->len)) {
                        struct tr_failure *failure = tr_request_check_name(request, text, token->len);
                        return failure ? failure : find_name(registry, text, token->len, ret_target);
                }
        }
        return tr_request_bad_param(request, index, "a handle, its text, or a published name");
}

struct tr_failure *tr_request_component(const struct tr_request *request, uint32_t index, struct tr_component **ret_component) {
        const char *name;
        size_t len;
        struct tr_failure *failure = tr_request_name(request, index, &name, &len);
        if (!failure)
                failure = tr_request_check_name(request, name, len);
        if (failure)
                return failure;
        struct tr_component *component = tr_component_find(request->connection->server->system, name, len);
        if (!component)
                return tr_failure_new(TR_CODE_NOT_FOUND, "there is no component %.*s", (int)len, name);
        *ret_component = component;
        return NULL;
}

struct tr_failure *tr_request_call(const struct tr_request *request, struct tr_message **ret_message) {
        const struct tr_span *input = &request->params[2].span;
        const char *operation;
        size_t len;
        struct tr_failure *failure = tr_request_text(request, 1, &operation, &len);
        if (!failure && len > UINT16_MAX)
                failure = tr_request_bad_param(request, 1, "a string of at most 65535 bytes");
        if (failure)
                return failure;
        *ret_message = tr_message_new(TR_MESSAGE_HANDLER, operation, len, input->data, input->bytes, 1);
        return *ret_message ? NULL : tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the call");
}

struct tr_failure *tr_request_check_reach(const struct tr_request *request, struct tr_target *target) {
        const struct tr_connection *connection = request->connection;
        if ((connection->roles & TR_ROLE_OPERATE) || target->owner_uid == connection->peer.uid)
                return NULL;
        return tr_failure_new(TR_CODE_DENIED, "%s of what another user started needs the role operate",
                              request->method->name);
}

struct tr_failure *tr_request_own_target(const struct tr_request *request, uint32_t index,
                                         struct tr_target **ret_target) {
        struct tr_target *target;
        struct tr_failure *failure = tr_request_target(request, index, &target);
        if (failure)
                return failure;
        failure = tr_request_check_reach(request, target);
        if (failure) {
                tr_target_unref(target);
                return failure;
        }
        *ret_target = target;
        return NULL;
}

struct tr_failure *tr_request_expect(struct tr_request *request, struct tr_message *message, uint64_t timeout_ns) {
        struct tr_connection *connection = request->connection;
        message->caller_uid = connection->peer.uid;
        if (!request->wants_answer)
                return NULL;
        struct tr_failure *failure = tr_connection_sign(connection, message, request->id, timeout_ns);
        if (!failure)
                failure = tr_connection_expect(connection, message);
        request->deferred = !failure;
        return failure;
}

void tr_request_retract(struct tr_request *request, struct tr_message *message) {
        if (request->deferred)
                tr_connection_forget(request->connection, message);
        request->deferred = false;
}

struct tr_failure *tr_request_hand_on(struct tr_request *request, struct tr_message *take_message, tr_request_ask *ask,
                                      const void *userdata) {
        struct tr_failure *failure = tr_request_expect(request, take_message, request->connection->timeout_ns);
        if (!failure) {
                failure = ask(request, userdata, tr_message_ref(take_message));
                if (failure) {
                        tr_request_retract(request, take_message);
                        tr_message_unref(take_message); /* which was not taken */
                }
        }
        tr_message_unref(take_message);
        return failure;
}
