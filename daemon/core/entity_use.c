/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entity of a call: read, handed over, written.
 *
 * Whoever has a turn (core/entity_turn.h) gives it up when what he has changed was submitted: the store does what it is given in order, so
 * that whoever reads next sees it.
 */
#include "daemon/core/entity_use.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/contract/manifest.h"
#include "daemon/core/invocation.h"
#include "daemon/core/replica.h"
#include "daemon/core/system.h"

/* A read is being submitted on this thread, by who looks for more to deliver when it has been. */
static _Thread_local bool submitting;

static bool changes(const struct tr_operation *operation) {
        return operation->type == TR_OPERATION_TRANSITION || operation->type == TR_OPERATION_ASSIGNMENT;
}

static bool lists(const struct tr_operation *operation) {
        return operation->type == TR_OPERATION_OBSERVATION && operation->entries;
}

/* An observation that names no entity gets nil, for which nobody has to be asked. */
static bool uses(const struct tr_operation *operation, bool has_id) {
        return changes(operation) || lists(operation) || (operation->type == TR_OPERATION_OBSERVATION && has_id);
}

/* The beginning */

static struct tr_failure *bad(const struct tr_operation *operation, const char *what) {
        return tr_failure_new(TR_CODE_BAD_REQUEST, "%s: %s", operation->name, what);
}

struct tr_failure *tr_entity_use_check(const struct tr_component *component, const struct tr_operation *operation,
                                       const struct tr_call_options *options) {
        const struct tr_system *system = component->target.system;
        bool asks_for_list = options->where || options->sort || options->after || options->limit;
        if (options->id && !tr_store_text_is_valid(options->id, options->id_len))
                return bad(operation, "an id is 1 to 256 bytes of UTF-8 without control characters");
        if (asks_for_list && !lists(operation))
                return bad(operation, "where, sort, limit and after are for observations of the scope entries");
        if (options->after && !tr_store_text_is_valid(options->after, options->after_len))
                return bad(operation, "after is an id: 1 to 256 bytes of UTF-8 without control characters");
        if (options->sort && memchr(options->sort, '\0', options->sort_len))
                return bad(operation, "sort is the name of a field, without NUL characters");
        return uses(operation, options->id) && !system->store ? tr_store_none(system) : NULL;
}

static bool use_keep_list(struct tr_entity_use *use, const struct tr_call_options *options) {
        if (options->sort && !(use->sort = strndup(options->sort, options->sort_len)))
                return false;
        if (options->after && !(use->after = strndup(options->after, options->after_len)))
                return false;
        if (options->where) {
                use->where = malloc(options->where_bytes);
                if (!use->where)
                        return false;
                memcpy(use->where, options->where, options->where_bytes);
        }
        use->job.list = (struct tr_store_list){
                .where = use->where,
                .where_bytes = options->where_bytes,
                .sort = use->sort,
                .after = use->after,
                .limit = options->limit,
        };
        return true;
}

/* The id of an entity that is not there yet. */
static struct tr_failure *make_id(struct tr_invocation *invocation) {
        invocation->id = malloc(TR_STORE_ID_LEN + 1);
        if (!invocation->id)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for a call");
        if (tr_store_new_id(invocation->id) < 0)
                return tr_failure_new(TR_CODE_INTERNAL, "no random bytes for the id of an entity");
        return NULL;
}

struct tr_failure *tr_entity_use_make(struct tr_invocation *invocation, const struct tr_call_options *options) {
        const struct tr_operation *operation = invocation->operation;
        if (!uses(operation, invocation->id))
                return NULL;
        struct tr_entity_use *use = calloc(1, sizeof(*use));
        if (use)
                tr_list_init(&use->turn.waiting);
        if (!use || !use_keep_list(use, options)) {
                tr_entity_use_free(use);
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for a call");
        }
        use->invocation = invocation;
        use->is_new = !invocation->id && changes(operation);
        use->turn.contends = operation->type == TR_OPERATION_TRANSITION && !use->is_new;
        struct tr_failure *failure = use->is_new ? make_id(invocation) : NULL;
        if (failure)
                tr_entity_use_free(use);
        else
                invocation->entity = use;
        return failure;
}

void tr_entity_use_free(struct tr_entity_use *use) {
        if (!use)
                return;
        assert(!use->turn.is_mine && tr_list_is_empty(&use->turn.waiting));
        tr_store_job_deinit(&use->job);
        tr_writer_deinit(&use->output);
        tr_writer_deinit(&use->changes);
        free(use->sort);
        free(use->after);
        free(use->where);
        free(use);
}

/* Reading */

/* An empty job of its component and entity; what a list asks for stays. */
static struct tr_store_job *begin_job(struct tr_entity_use *use, enum tr_store_kind kind, void (*done)(struct tr_store_job *job)) {
        const struct tr_invocation *invocation = use->invocation;
        tr_store_job_deinit(&use->job);
        use->job = (struct tr_store_job){
                .kind = kind,
                .done = done,
                .component = invocation->component->target.label,
                .id = invocation->id,
                .list = use->job.list,
        };
        return &use->job;
}

static struct tr_entity_use *use_of(struct tr_store_job *job) {
        return tr_container_of(job, struct tr_entity_use, job);
}

/* The store's thread, or, where it takes no more, tr_entity_use_read(). */
static void on_read(struct tr_store_job *job) {
        struct tr_entity_use *use = use_of(job);
        struct tr_component *component = tr_component_ref(use->invocation->component);
        struct tr_target *target = tr_steal(use->target);
        struct tr_failure *failure = tr_steal(job->failure);
        bool is_inside = submitting;
        tr_component_deliver(use->invocation->message, tr_steal(use->replica), target, failure);
        if (!is_inside)
                tr_component_dispatch(component);
        tr_failure_unref(failure);
        tr_target_unref(target);
        tr_component_unref(component);
}

bool tr_entity_use_read(struct tr_message *take_call, struct tr_replica *take_replica, struct tr_target *take_target) {
        struct tr_entity_use *use = take_call->invocation->entity;
        const struct tr_operation *operation = take_call->invocation->operation;
        if (!use || use->is_new || operation->type == TR_OPERATION_ASSIGNMENT)
                return false;
        use->replica = take_replica;
        use->target = take_target;
        struct tr_store_job *job = begin_job(use, lists(operation) ? TR_STORE_LIST : TR_STORE_GET, on_read);
        bool before = submitting;
        submitting = true;
        tr_store_submit(take_replica->component->target.system->store, job);
        submitting = before;
        return true;
}

void tr_entity_use_hand(struct tr_invocation *invocation, struct tr_entity_handed *ret_handed) {
        /* A map of one pair, and the head of a text of 32 bytes. */
        static const char head[] = "\x81\xa2id\xd9\x20";
        struct tr_entity_use *use = invocation->entity;
        if (invocation->operation->type == TR_OPERATION_ASSIGNMENT)
                return;
        if (use->is_new) {
                memcpy(use->fresh, head, sizeof(head) - 1);
                memcpy(use->fresh + sizeof(head) - 1, invocation->id, TR_STORE_ID_LEN);
                *ret_handed = (struct tr_entity_handed){ .data = use->fresh, .bytes = sizeof(use->fresh) };
        } else {
                uint8_t *memory = tr_steal(use->job.value);
                *ret_handed = (struct tr_entity_handed){
                        .data = memory, .bytes = use->job.value_bytes, .memory = memory, .version = use->job.version,
                };
        }
}

/* Writing */

/* What a replica has answered, before anything comes of it. */
struct answer {
        const uint8_t *output;
        size_t output_bytes;
        const uint8_t *changes; /* NULL: nothing is changed */
        size_t changes_bytes;
};

/* Where nothing is to be kept, or to be laid over what is there. */
static const uint8_t empty_map[] = { 0x80 };

/* [output, changes], the latter nil or a map. `whole`: an empty one is an entity without fields, and else no change. */
static struct tr_failure *split(const struct tr_operation *operation, const void *value, size_t bytes, bool whole,
                                struct answer *ret_answer) {
        struct tr_reader reader = tr_reader(value, bytes);
        struct tr_token head;
        if (tr_read(&reader, &head) != 0 || head.type != TR_ARRAY || head.count != 2)
                return tr_contract_failure("output", "", "is to be an array of the output and the changes", operation->name);
        ret_answer->output = reader.at;
        if (tr_read_skip(&reader) != 0)
                return tr_contract_failure("output", "", "is to be an array of the output and the changes", operation->name);
        ret_answer->output_bytes = (size_t)(reader.at - ret_answer->output);
        ret_answer->changes = reader.at;
        ret_answer->changes_bytes = (size_t)(reader.end - reader.at);
        bool read = tr_read(&reader, &head) == 0;
        bool is_empty = read && (head.type == TR_ARRAY || head.type == TR_MAP) && head.count == 0;
        if (!read || (head.type != TR_NIL && head.type != TR_MAP && !is_empty))
                return tr_contract_failure("entity", "", "is to be changed by a map", operation->name);
        if (head.type == TR_NIL || (is_empty && !whole)) {
                ret_answer->changes = NULL;
        } else if (is_empty) {
                ret_answer->changes = empty_map;
                ret_answer->changes_bytes = sizeof(empty_map);
        }
        return NULL;
}

/* The output in the form that the caller is answered in, and the changes: kept until they are written. */
static struct tr_failure *keep(struct tr_entity_use *use, const struct answer *answer) {
        tr_writer_reset(&use->output);
        tr_writer_reset(&use->changes);
        struct tr_failure *failure =
                tr_invocation_make_answer(use->invocation->message, answer->output, answer->output_bytes, &use->output);
        if (failure)
                return failure;
        if (use->output.len == 0)
                tr_write_raw(&use->output, answer->output, answer->output_bytes);
        if (answer->changes)
                tr_write_raw(&use->changes, answer->changes, answer->changes_bytes);
        else
                tr_write_raw(&use->changes, empty_map, sizeof(empty_map));
        if (tr_writer_error(&use->output) || tr_writer_error(&use->changes))
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for what has changed");
        return NULL;
}

/* The store's thread, or, where it takes no more, who has answered. Takes the call's reference. */
static void on_written(struct tr_store_job *job) {
        struct tr_entity_use *use = use_of(job);
        struct tr_message *call = use->invocation->message;
        struct tr_component *component = tr_component_ref(use->invocation->component);
        struct tr_failure *failure = tr_steal(job->failure);
        if (!failure)
                tr_invocation_answer(call, use->output.data, use->output.len);
        else if (failure->code == TR_CODE_CONFLICT && ++use->conflicts < TR_ENTITY_RUNS_MAX)
                tr_component_run_again(call);
        else
                tr_invocation_reject(call, failure, TR_RAN_YES);
        tr_failure_unref(failure);
        tr_message_unref(call);
        tr_component_end_write(component);
        tr_component_unref(component);
}

static void write_changes(struct tr_entity_use *use, uint64_t expect, bool merge) {
        struct tr_component *component = use->invocation->component;
        struct tr_store_job *job = begin_job(use, TR_STORE_WRITE, on_written);
        job->document = use->changes.data;
        job->document_bytes = use->changes.len;
        job->merge = merge;
        job->expect = expect;
        job->schema = use->invocation->manifest->entity;
        tr_message_ref(use->invocation->message);
        tr_component_begin_write(component);
        tr_store_submit(component->target.system->store, job);
}

void tr_entity_use_answered(struct tr_delivery *delivery, const void *value, size_t bytes) {
        struct tr_message *call = delivery->message;
        struct tr_invocation *invocation = call->invocation;
        struct tr_entity_use *use = invocation->entity;
        const struct tr_operation *operation = invocation->operation;
        bool is_transition = operation->type == TR_OPERATION_TRANSITION;
        bool whole = is_transition && delivery->replica->whole_entities;
        struct answer answer = { 0 };
        if (!changes(operation)) {
                tr_invocation_resolve(call, value, bytes);
                return;
        }
        struct tr_failure *failure = split(operation, value, bytes, whole, &answer);
        if (!failure && answer.changes && is_transition && !use->is_new && delivery->entity.version == 0)
                failure = tr_contract_failure("entity", "", "is not there, and was changed", operation->name);
        if (!failure)
                failure = keep(use, &answer);
        if (failure)
                tr_invocation_reject(call, failure, TR_RAN_YES);
        else if (!answer.changes && !use->is_new)
                tr_invocation_answer(call, use->output.data, use->output.len);
        else
                write_changes(use, is_transition || use->is_new ? delivery->entity.version : TR_STORE_ANY, !whole);
        tr_failure_unref(failure);
        tr_component_end_turn(invocation);
}
