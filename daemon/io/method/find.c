/* SPDX-License-Identifier: Apache-2.0 */
/*
 * find name: the handle published under a name, or nil.
 */
#include "config.h"

#include "daemon/io/method.h"

#include "daemon/core/system.h"
#include "daemon/core/target.h"
#include "daemon/io/connection.h"
#include "daemon/io/server_internal.h"

struct tr_failure *tr_method_find_name(struct tr_request *request) {
        const char *name;
        size_t len;
        struct tr_failure *failure = tr_request_name(request, 0, &name, &len);
        if (!failure)
                failure = tr_request_check_name(request, name, len);
        if (failure)
                return failure;
        struct tr_target *target = tr_registry_find_name(&request->connection->server->system->registry, name, len);
        if (target)
                tr_response_write_handle(request->result, request->connection->form.values, &target->handle);
        tr_target_unref(target);
        return NULL;
}
