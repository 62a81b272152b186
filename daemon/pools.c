/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pools.h"

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/core/pool.h"

static struct tr_failure *pool_start(struct tr_system *system, const struct tr_settings_pool *settings) {
        const struct tr_pool_options options = {
                .name = settings->name,
                .publish = settings->publish,
                .actor = settings->actor,
                .args = settings->args.data,
                .args_bytes = settings->args.bytes,
                .args_count = settings->args.count,
                .owner_uid = system->own_uid,
                .workers = (uint32_t)settings->workers,
                .routing = (enum tr_routing)settings->routing,
                .queue = (uint32_t)settings->queue,
                .heap_bytes = settings->heap_bytes,
                .mailbox = (uint32_t)settings->mailbox,
                .mailbox_bytes = settings->mailbox_bytes,
                .async = (uint32_t)settings->async,
                .backoff_min_ns = settings->backoff_min_ms * TR_NS_PER_MS,
                .backoff_max_ns = settings->backoff_max_ms * TR_NS_PER_MS,
                .backoff_reset_ns = settings->backoff_reset_ms * TR_NS_PER_MS,
                .persistent = true,
        };
        struct tr_message *start = tr_message_new(TR_MESSAGE_INIT, "init", 4, NULL, 0, 0);
        struct tr_target *target;
        struct tr_failure *failure;

        if (!start)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
        if (!tr_pool_backoff_is_valid(&options)) {
                tr_message_unref(start);
                return tr_failure_new(TR_CODE_BAD_REQUEST, "backoff.max is less than backoff.min");
        }
        failure = tr_pool_start(system, system->daemon_session, &options, start, &target, NULL);
        if (!failure)
                tr_target_unref(target);
        return failure;
}

void tr_pools_start(struct tr_system *system, const struct tr_settings_pools *pools) {
        for (size_t i = 0; i < pools->count; i++) {
                struct tr_failure *failure = pool_start(system, &pools->list[i]);

                if (failure)
                        tr_log(TR_LOG_ERROR, "configured pool %s: %s: %s; it is not started", pools->list[i].name,
                               tr_code_text(failure->code), failure->message);
                tr_failure_unref(failure);
        }
}
