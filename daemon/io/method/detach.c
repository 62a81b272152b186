/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detach target: it belongs to the daemon's own session from now on, and so does what it spawns later.
 */
#include "config.h"

#include "daemon/io/method.h"

#include "daemon/core/session.h"
#include "daemon/core/target.h"

struct tr_failure *tr_method_detach(struct tr_request *request) {
        struct tr_target *target;
        struct tr_failure *failure = tr_request_own_target(request, 0, &target);
        if (failure)
                return failure;
        if (target->ops->kind == TR_TARGET_CONNECTION)
                failure = tr_failure_new(TR_CODE_DENIED, "detach: a connection belongs to no session");
        else if (tr_target_has_ended(target))
                failure = tr_failure_new(TR_CODE_NOT_RUNNING, "the actor is not running");
        else
                tr_session_detach(target);
        tr_target_unref(target);
        return failure;
}
