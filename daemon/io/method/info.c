/* SPDX-License-Identifier: Apache-2.0 */
/*
 * info target: a map with everything known about it.
 */
#include "config.h"

#include "daemon/io/method.h"

#include <stdatomic.h>

#include "daemon/core/target.h"
#include "daemon/io/connection.h"

struct tr_failure *tr_method_info(struct tr_request *request) {
        struct tr_target *target;
        struct tr_failure *failure = tr_request_own_target(request, 0, &target);
        if (failure)
                return failure;
        if (atomic_load(&target->gone))
                failure = tr_failure_new(TR_CODE_NOT_RUNNING, "the actor is not running");
        else
                tr_target_write_info(target, request->connection->form.values == TR_FORM_PLAIN, request->result);
        tr_target_unref(target);
        return failure;
}
