/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish name, target: the target is found under that name from now on.
 */
#include "config.h"

#include "daemon/io/method.h"

#include "daemon/core/registry.h"
#include "daemon/core/system.h"
#include "daemon/core/target.h"

static struct tr_failure *publish(struct tr_target *target, const char *name, size_t len) {
        switch (tr_registry_publish(&target->system->registry, name, len, target, NULL, NULL)) {
        case 0:
                return NULL;
        case TR_REGISTRY_TAKEN:
                return tr_failure_new(TR_CODE_TAKEN, "the name %.*s is published already", (int)len, name);
        case TR_REGISTRY_ENDED:
                return tr_failure_new(TR_CODE_NOT_RUNNING, "the actor is not running");
        default:
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the name");
        }
}

struct tr_failure *tr_method_publish(struct tr_request *request) {
        const char *name;
        size_t len;
        struct tr_target *target = NULL;
        struct tr_failure *failure = tr_request_name(request, 0, &name, &len);
        if (!failure)
                failure = tr_request_check_name(request, name, len);
        if (!failure)
                failure = tr_request_own_target(request, 1, &target);
        if (!failure)
                failure = publish(target, name, len);
        tr_target_unref(target);
        return failure;
}
