/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop target, {kill?, within?}?: nil at once; it ends orderly, or, where it is killed or has not ended within the
 * time, at once. Nothing happens where it has ended already.
 */
#include "config.h"

#include "daemon/io/method.h"

#include "daemon/base/clock.h"
#include "daemon/core/target.h"
#include "daemon/io/connection.h"
#include "daemon/io/option.h"

struct stop_options {
        bool kill;
        uint64_t within_ns;
};

static const struct tr_option options[] = {
        { "kill", TR_OPTION_BOOL, offsetof(struct stop_options, kill) },
        { "within", TR_OPTION_TIME, offsetof(struct stop_options, within_ns) },
};

/* NULL, or why this is not to be stopped from outside. */
static struct tr_failure *check_kind(const struct tr_request *request, const struct tr_target *target, bool kill) {
        if (target->ops->kind == TR_TARGET_CONNECTION)
                return tr_failure_new(TR_CODE_DENIED, "stop: a connection is not stopped by others");
        if (target->ops->kind != TR_TARGET_WORKER)
                return NULL;
        if (!kill)
                return tr_failure_new(TR_CODE_DENIED, "stop: a worker ends with its pool; alone it can be killed only");
        if (!(request->connection->roles & TR_ROLE_OPERATE))
                return tr_failure_new(TR_CODE_DENIED, "stop: to kill one worker of a pool needs the role %s",
                                      tr_role_text(TR_ROLE_OPERATE));
        return NULL;
}

struct tr_failure *tr_method_stop(struct tr_request *request) {
        struct stop_options chosen = { .within_ns = TR_NEVER };
        struct tr_target *target = NULL;
        struct tr_failure *failure = TR_OPTIONS_READ(request, 1, options, &chosen);
        if (!failure)
                failure = tr_request_own_target(request, 0, &target);
        if (failure && failure->code == TR_CODE_NOT_RUNNING) {
                tr_failure_unref(failure);
                return NULL;
        }
        if (failure)
                return failure;
        failure = check_kind(request, target, chosen.kill);
        if (failure) {
                tr_target_unref(target);
                return failure;
        }

        const struct tr_peer *peer = &request->connection->peer;
        tr_target_note_stopper(target, peer->uid, peer->pid, chosen.kill);
        if (chosen.kill)
                target->ops->kill(target);
        else
                target->ops->stop(target, TR_STOP_ASKED, chosen.within_ns);
        tr_target_unref(target);
        return NULL;
}
