/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list {kind?}?: an array of maps, one for each thing that the caller reaches: with the role `operate` all, else what
 * the same user started; of a component's replicas, all where the component is reached, else those that the same user serves.
 */
#include "config.h"

#include "daemon/io/method.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/core/component.h"
#include "daemon/core/registry.h"
#include "daemon/core/replica.h"
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
        bool components;
        bool plain;
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
        bool components = tr_text_equals(&chosen.kind, "component");
        if (!all && !actors && !pools && !components)
                return tr_failure_new(TR_CODE_BAD_REQUEST, "list: the option kind has to be actor, pool or component");
        *ret_filter = (struct list_filter){
                .actors = all || actors,
                .pools = all || pools,
                .components = all || components,
                .plain = request->connection->form.values == TR_FORM_PLAIN,
                .everybodys = request->connection->roles & TR_ROLE_OPERATE,
                .uid = request->connection->peer.uid,
        };
        return NULL;
}

/* Replicas are listed with their component. */
static bool is_of_kind(const struct list_filter *filter, const struct tr_target *target) {
        switch (target->ops->kind) {
        case TR_TARGET_ACTOR:
                return filter->actors;
        case TR_TARGET_POOL:
        case TR_TARGET_WORKER:
                return filter->pools;
        case TR_TARGET_COMPONENT:
                return filter->components;
        case TR_TARGET_CONNECTION:
        case TR_TARGET_REPLICA:
                break;
        }
        return false;
}

/* Answers how many were written. */
static uint32_t write_replicas(const struct list_filter *filter, struct tr_component *component, bool reached,
                               struct tr_writer *writer) {
        struct tr_replica **replicas;
        uint32_t count, listed = 0;
        if (tr_component_list_replicas(component, &replicas, &count) < 0) {
                writer->error = -ENOMEM;
                return 0;
        }
        for (uint32_t i = 0; i < count; i++) {
                if (reached || replicas[i]->uid == filter->uid) {
                        tr_replica_write_info(replicas[i], filter->plain, writer);
                        listed++;
                }
                tr_replica_unref(replicas[i]);
        }
        free(replicas);
        return listed;
}

/* The same, with what is in it. */
static uint32_t write_target(const struct list_filter *filter, struct tr_target *target, struct tr_writer *writer) {
        struct tr_component *component = tr_component_of(target);
        bool reached = filter->everybodys || target->owner_uid == filter->uid;
        if (!is_of_kind(filter, target))
                return 0;
        if (reached)
                tr_target_write_info(target, filter->plain, writer);
        return reached + (component ? write_replicas(filter, component, reached, writer) : 0);
}

struct tr_failure *tr_method_list(struct tr_request *request) {
        struct tr_connection *connection = request->connection;
        struct list_filter filter;
        struct tr_target **targets;
        size_t count;
        uint32_t listed = 0;
        struct tr_writer maps = TR_WRITER_INIT;
        struct tr_failure *failure = read_filter(request, &filter);
        if (failure)
                return failure;
        if (tr_registry_list(&connection->server->system->registry, &targets, &count) < 0)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the list");

        for (size_t i = 0; i < count; i++) {
                listed += write_target(&filter, targets[i], &maps);
                tr_target_unref(targets[i]);
        }
        free(targets);
        tr_write_array(request->result, listed);
        tr_write_raw(request->result, maps.data, maps.len);
        if (tr_writer_error(&maps))
                request->result->error = tr_writer_error(&maps);
        tr_writer_deinit(&maps);
        return NULL;
}
