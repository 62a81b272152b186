/* SPDX-License-Identifier: Apache-2.0 */
/*
 * info target: a map with everything known about it. A component goes by its name too, where nothing is published under that.
 */
#include "config.h"

#include "daemon/io/method.h"

#include <stdatomic.h>

#include "daemon/core/component.h"
#include "daemon/core/target.h"
#include "daemon/io/connection.h"
#include "daemon/io/server_internal.h"

static struct tr_failure *find(const struct tr_request *request, struct tr_target **ret_target) {
        const struct tr_token *token = &request->params[0].token;
        struct tr_failure *failure = tr_request_target(request, 0, ret_target);
        if (!failure || failure->code != TR_CODE_NOT_FOUND)
                return failure;
        struct tr_component *component =
                tr_component_find(request->connection->server->system, (const char *)token->data, token->len);
        if (!component)
                return failure;
        tr_failure_unref(failure);
        *ret_target = &component->target;
        return NULL;
}

struct tr_failure *tr_method_info(struct tr_request *request) {
        struct tr_target *target = NULL;
        struct tr_failure *failure = find(request, &target);
        if (!failure)
                failure = tr_request_check_reach(request, target);
        if (!failure && atomic_load(&target->gone))
                failure = tr_failure_new(TR_CODE_NOT_RUNNING, "the actor is not running");
        if (!failure)
                tr_target_write_info(target, request->connection->form.values == TR_FORM_PLAIN, request->result);
        tr_target_unref(target);
        return failure;
}
