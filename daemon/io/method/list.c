/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list {kind?}?: an array of maps, one for each thing that the caller reaches: with the role `operate` all, else what
 * the same user started.
 */
#include "config.h"

#include "daemon/io/method.h"

#include <stdlib.h>

#include "daemon/core/registry.h"
#include "daemon/core/system.h"
#include "daemon/core/target.h"
#include "daemon/io/connection.h"
#include "daemon/io/option.h"
#include "daemon/io/server_internal.h"

struct list_options {
        struct tr_text kind;
};

static const struct tr_option options[] = {
        { "kind", TR_OPTION_TEXT, offsetof(struct list_options, kind) },
};

struct list_filter {
        bool actors;
        bool pools;
        bool everybodys;
        uint32_t uid;
};

static struct tr_failure *read_filter(struct tr_request *request, struct list_filter *ret_filter) {
        struct list_options chosen = { 0 };
        struct tr_failure *failure = TR_OPTIONS_READ(request, 0, options, &chosen);
        if (failure)
                return failure;
        bool all = !chosen.kind.data;
        bool actors = tr_text_equals(&chosen.kind, "actor"), pools = tr_text_equals(&chosen.kind, "pool");
        if (!all && !actors && !pools && !tr_text_equals(&chosen.kind, "component"))
                return tr_failure_new(TR_CODE_BAD_REQUEST, "list: the option kind has to be actor, pool or component");
        *ret_filter = (struct list_filter){
                .actors = all || actors,
                .pools = all || pools,
                .everybodys = request->connection->roles & TR_ROLE_OPERATE,
                .uid = request->connection->peer.uid,
        };
        return NULL;
}

static bool is_listed(const struct list_filter *filter, const struct tr_target *target) {
        if (!filter->everybodys && target->owner_uid != filter->uid)
                return false;
        return (target->ops->kind == TR_TARGET_ACTOR && filter->actors) ||
               ((target->ops->kind == TR_TARGET_POOL || target->ops->kind == TR_TARGET_WORKER) && filter->pools);
}

struct tr_failure *tr_method_list(struct tr_request *request) {
        struct tr_connection *connection = request->connection;
        struct list_filter filter;
        struct tr_target **targets;
        size_t count;
        uint32_t listed = 0;
        struct tr_failure *failure = read_filter(request, &filter);
        if (failure)
                return failure;
        if (tr_registry_list(&connection->server->system->registry, &targets, &count) < 0)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the list");

        for (size_t i = 0; i < count; i++)
                listed += is_listed(&filter, targets[i]);
        tr_write_array(request->result, listed);
        for (size_t i = 0; i < count; i++) {
                if (is_listed(&filter, targets[i]))
                        tr_target_write_info(targets[i], connection->form.values == TR_FORM_PLAIN, request->result);
                tr_target_unref(targets[i]);
        }
        free(targets);
        return NULL;
}
