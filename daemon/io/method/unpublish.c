/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpublish name: nothing is found under that name any more.
 */
#include "config.h"

#include "daemon/io/method.h"

#include "daemon/core/registry.h"
#include "daemon/core/system.h"
#include "daemon/core/target.h"
#include "daemon/io/connection.h"
#include "daemon/io/server_internal.h"

static struct tr_failure *not_published(const char *name, size_t len) {
        return tr_failure_new(TR_CODE_NOT_FOUND, "nothing is published under the name %.*s", (int)len, name);
}

struct tr_failure *tr_method_unpublish(struct tr_request *request) {
        struct tr_registry *registry = &request->connection->server->system->registry;
        const char *name;
        size_t len;
        struct tr_failure *failure = tr_request_name(request, 0, &name, &len);
        if (failure)
                return failure;
        struct tr_target *target = tr_registry_find_name(registry, name, len);
        if (!target)
                return not_published(name, len);
        failure = tr_request_check_reach(request, target);
        if (!failure && tr_registry_unpublish(registry, name, len) != 0)
                failure = not_published(name, len); /* it ended just now */
        tr_target_unref(target);
        return failure;
}
