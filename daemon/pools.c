/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool is known by its name. Its module's hash is that of what was on disk when its workers were last started or renewed: it
 * tells whether a reload finds another.
 */
#include "daemon/pools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/core/pool.h"
#include "daemon/core/system.h"
#include "daemon/script/script.h"

struct configured {
        struct tr_list link;
        struct tr_settings_pool settings; /* its own copy */
        char hash[TR_MODULE_HASH_SIZE];
        struct tr_target *target; /* strong; NULL: it could not be started */
};

struct tr_pools {
        struct tr_system *system;
        const struct tr_script *script;
        struct tr_list list;
};

static struct tr_failure *no_memory(void) {
        return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
}

static const char *name_of(const struct tr_settings_pool *settings) {
        return settings->publish ? settings->publish : settings->name;
}

/* `before` is the one that it follows, or NULL. */
static struct tr_failure *start(struct tr_pools *pools, struct configured *configured, struct tr_target *before) {
        const struct tr_settings_pool *settings = &configured->settings;
        struct tr_system *system = pools->system;
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
                .replaces = before,
        };
        struct tr_message *message;

        if (!tr_pool_backoff_is_valid(&options))
                return tr_failure_new(TR_CODE_BAD_REQUEST, "backoff.max is less than backoff.min");
        message = tr_message_new(TR_MESSAGE_INIT, "init", 4, NULL, 0, 0);
        if (!message)
                return no_memory();
        tr_script_module_hash(pools->script, settings->actor, configured->hash);
        return tr_pool_start(system, system->daemon_session, &options, message, &configured->target, NULL);
}

static void stop(struct tr_pools *pools, struct tr_target *target) {
        if (target)
                target->ops->stop(target, TR_STOP_ASKED, pools->system->limits.grace_ns);
}

/* It is known no more. */
static void drop(struct configured *configured) {
        tr_list_unlink(&configured->link);
        tr_target_unref(configured->target);
        tr_settings_pool_deinit(&configured->settings);
        free(configured);
}

static struct configured *find(struct tr_pools *pools, const struct tr_settings_pool *settings) {
        struct configured *configured;

        tr_list_for_each(configured, &pools->list, link)
                if (strcmp(name_of(&configured->settings), name_of(settings)) == 0)
                        return configured;
        return NULL;
}

/* Its workers are replaced where its module is another one now. */
static void renew(struct tr_pools *pools, struct configured *configured) {
        char hash[TR_MODULE_HASH_SIZE];

        tr_script_module_hash(pools->script, configured->settings.actor, hash);
        if (strcmp(hash, configured->hash) == 0)
                return;
        memcpy(configured->hash, hash, sizeof(hash));
        tr_log(TR_LOG_INFO, "pool %s: its module has changed; its workers are replaced", name_of(&configured->settings));
        tr_pool_renew(tr_pool_of(configured->target));
}

/* A pool of these settings, in place of `before`, which is forgotten (NULL: there is none). */
static struct tr_failure *add(struct tr_pools *pools, const struct tr_settings_pool *settings, struct configured *before) {
        struct configured *configured = calloc(1, sizeof(*configured));
        struct tr_failure *failure;

        if (!configured || tr_settings_pool_copy(settings, &configured->settings) < 0) {
                free(configured);
                return no_memory();
        }
        tr_list_append(&pools->list, &configured->link);
        failure = start(pools, configured, before ? before->target : NULL);
        if (before && !failure) {
                stop(pools, before->target);
                drop(before);
        } else if (before) {
                drop(configured);
        }
        return failure;
}

static struct tr_failure *set_one(struct tr_pools *pools, const struct tr_settings_pool *settings) {
        struct configured *configured = find(pools, settings);
        bool runs = configured && configured->target && !tr_target_has_ended(configured->target);

        if (configured)
                if (runs && tr_settings_pool_equals(&configured->settings, settings)) {
                renew(pools, configured);
                return NULL;
        }
        if (configured && !runs) {
                drop(configured);
                configured = NULL;
        }
        return add(pools, settings, configured);
}

static void remove_unwanted(struct tr_pools *pools, const struct tr_settings_pools *settings) {
        struct configured *configured;

        tr_list_for_each(configured, &pools->list, link) {
                bool wanted = false;

                for (size_t i = 0; i < settings->count && !wanted; i++)
                        wanted = strcmp(name_of(&settings->list[i]), name_of(&configured->settings)) == 0;
                if (wanted)
                        continue;
                tr_log(TR_LOG_INFO, "pool %s: it is not configured any more", name_of(&configured->settings));
                stop(pools, configured->target);
                drop(configured);
        }
}

int tr_pools_new(struct tr_system *system, const struct tr_script *script, struct tr_pools **ret_pools) {
        struct tr_pools *pools = calloc(1, sizeof(*pools));

        if (!pools)
                return tr_error_origin(-ENOMEM);
        pools->system = system;
        pools->script = script;
        tr_list_init(&pools->list);
        *ret_pools = pools;
        return 0;
}

struct tr_failure *tr_pools_set(struct tr_pools *pools, const struct tr_settings_pools *settings) {
        struct tr_failure *first = NULL;

        remove_unwanted(pools, settings);
        for (size_t i = 0; i < settings->count; i++) {
                struct tr_failure *failure = set_one(pools, &settings->list[i]);

                if (!failure)
                        continue;
                tr_log(TR_LOG_ERROR, "configured pool %s: %s: %s; it is not started", settings->list[i].name,
                       tr_code_text(failure->code), failure->message);
                if (first)
                        tr_failure_unref(failure);
                else
                        first = failure;
        }
        return first;
}

void tr_pools_free(struct tr_pools *pools) {
        struct configured *configured;

        if (!pools)
                return;
        tr_list_for_each(configured, &pools->list, link)
                drop(configured);
        free(pools);
}
