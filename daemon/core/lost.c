/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/lost.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/core/replica.h"
#include "daemon/core/store.h"
#include "daemon/core/system.h"
#include "daemon/core/task.h"

/* The operation of a manifest in effect, as the caller's; NULL: it has none, or there is no memory, which is logged. */
static char *operation_of(struct tr_component *component) {
        struct tr_manifest *manifest = tr_component_manifest(component);
        char *operation = manifest->lost ? strdup(manifest->lost) : NULL;
        if (manifest->lost && !operation)
                tr_log(TR_LOG_ERROR, "component %s: out of memory for the name of %s", component->target.label, manifest->lost);
        tr_manifest_unref(manifest);
        return operation;
}

static bool wants_to_know(struct tr_component *component) {
        tr_lock_acquire(&component->lock);
        bool wants = component->manifest->lost;
        tr_lock_release(&component->lock);
        return wants;
}

/* The task */

static struct tr_message *make_message(const char *operation, const char *instance, const char *reason) {
        struct tr_writer input = TR_WRITER_INIT;
        struct tr_message *message = NULL;
        tr_write_map(&input, 2);
        tr_write_text(&input, "instance");
        tr_write_text(&input, instance);
        tr_write_text(&input, "reason");
        tr_write_string(&input, reason, strlen(reason));
        if (!tr_writer_error(&input))
                message = tr_message_new(TR_MESSAGE_HANDLER, operation, strlen(operation), input.data, input.len, 1);
        tr_writer_deinit(&input);
        return message;
}

/* False: it could not be accepted. */
static bool tell(struct tr_component *component, const char *operation, const char *instance, const char *reason) {
        const struct tr_task_options options = { .uid = component->target.system->own_uid, .gid = getegid(), .pid = getpid() };
        struct tr_message *message = make_message(operation, instance, reason);
        struct tr_failure *failure = message ? tr_task_accept(component, &options, message)
                                             : tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for a task");
        if (!failure)
                return true;
        tr_log(TR_LOG_ERROR, "component %s: that the name %s was lost (%s) cannot be told to %s: %s: %s", component->target.label, instance,
               reason, operation, tr_code_text(failure->code), failure->message);
        tr_failure_unref(failure);
        tr_message_unref(message);
        return false;
}

/* What the store knows of names */

struct name_job {
        struct tr_store_job job;
        struct tr_component *component; /* strong */
        char instance[TR_NAME_MAX + 1];
};

static void on_done(struct tr_store_job *job) {
        struct name_job *name = tr_container_of(job, struct name_job, job);
        if (job->failure && job->failure->code != TR_CODE_SHUTTING_DOWN)
                tr_log(TR_LOG_ERROR, "component %s: the store does not know who holds its names: %s", name->component->target.label,
                       job->failure->message);
        tr_store_job_deinit(job);
        tr_component_unref(name->component);
        free(name);
}

static void submit(struct tr_component *component, enum tr_store_kind kind, const char *instance, void (*done)(struct tr_store_job *job)) {
        struct name_job *name = calloc(1, sizeof(*name));
        if (!name) {
                tr_log(TR_LOG_ERROR, "component %s: out of memory for who holds its names", component->target.label);
                return;
        }
        name->component = tr_component_ref(component);
        name->job = (struct tr_store_job){ .kind = kind, .done = done, .component = component->target.label };
        if (instance) {
                memcpy(name->instance, instance, strlen(instance) + 1);
                name->job.id = name->instance;
        }
        tr_store_submit(component->target.system->store, &name->job);
}

/* Holding */

void tr_lost_note(struct tr_replica *replica) {
        struct tr_component *component = replica->component;
        if (!component->target.system->store || !wants_to_know(component))
                return;
        submit(component, TR_STORE_NAME_HOLD, replica->instance, on_done);
        tr_lock_acquire(&component->lock);
        bool is_late = replica->given_up;
        replica->noted = !is_late;
        tr_lock_release(&component->lock);
        if (is_late) /* whoever gave it up could not know */
                submit(component, TR_STORE_NAME_RELEASE, replica->instance, on_done);
}

/* One that holds its name and is not noted, a reference; NULL: there is none. */
static struct tr_replica *next_to_note(struct tr_component *component) {
        struct tr_replica *replica, *found = NULL;
        tr_lock_acquire(&component->lock);
        tr_list_for_each(replica, &component->replicas, link)
                if (replica->state == TR_REPLICA_HOLDING && !replica->noted && !replica->given_up) {
                        found = tr_replica_ref(replica);
                        break;
                }
        tr_lock_release(&component->lock);
        return found;
}

void tr_lost_note_all(struct tr_component *component) {
        struct tr_replica *replica;
        if (!component->target.system->store || !wants_to_know(component))
                return;
        while ((replica = next_to_note(component))) {
                tr_lost_note(replica);
                tr_replica_unref(replica);
        }
}

/* Giving up. *ret_held: it held its name. False: it has been given up before. */
static bool give_up(struct tr_replica *replica, bool *ret_held, bool *ret_noted) {
        struct tr_component *component = replica->component;
        tr_lock_acquire(&component->lock);
        bool first = !replica->given_up;
        replica->given_up = true;
        *ret_held = replica->state == TR_REPLICA_HOLDING;
        *ret_noted = replica->noted;
        tr_lock_release(&component->lock);
        return first;
}

void tr_lost_give_up(struct tr_replica *replica) {
        bool held, noted;
        if (give_up(replica, &held, &noted) && noted)
                submit(replica->component, TR_STORE_NAME_RELEASE, replica->instance, on_done);
}

void tr_lost_hand_over(struct tr_replica *replica, const struct tr_replica *successor) {
        bool held, noted;
        if (give_up(replica, &held, &noted) && noted && strcmp(replica->instance, successor->instance) != 0)
                submit(replica->component, TR_STORE_NAME_RELEASE, replica->instance, on_done);
}

static const char *reason_of(const struct tr_replica *replica, const struct tr_failure *failure) {
        if (failure)
                return failure->message;
        return replica->pid > 0 ? "its connection ended" : "it ended";
}

void tr_lost_die(struct tr_replica *replica, const struct tr_failure *failure) {
        struct tr_component *component = replica->component;
        bool held, noted;
        if (!give_up(replica, &held, &noted))
                return;
        char *operation = held ? operation_of(component) : NULL;
        bool told = !operation || tell(component, operation, replica->instance, reason_of(replica, failure));
        free(operation);
        if (noted && told) /* behind the task: one of both is on disk, whatever happens; else the next daemon tells it */
                submit(component, TR_STORE_NAME_RELEASE, replica->instance, on_done);
}

/* The names that the daemon before this one has left. */
static void on_left(struct tr_store_job *job) {
        struct name_job *name = tr_container_of(job, struct name_job, job);
        struct tr_component *component = name->component;
        char *operation = operation_of(component);
        struct tr_reader reader = tr_reader(job->value, job->value_bytes);
        struct tr_token array, token;
        uint32_t count = !job->failure && operation && tr_read(&reader, &array) == 0 && array.type == TR_ARRAY ? array.count : 0;
        bool told = true;
        for (uint32_t i = 0; i < count && tr_read(&reader, &token) == 0; i++) {
                char instance[TR_NAME_MAX + 1] = "";
                if (token.len <= TR_NAME_MAX)
                        memcpy(instance, token.data, token.len);
                told &= tell(component, operation, instance, "the daemon ended");
        }
        if (count > 0 && told)
                submit(component, TR_STORE_NAMES_FORGET, NULL, on_done);
        free(operation);
        on_done(job);
}

void tr_lost_begin(struct tr_component *component) {
        if (component->target.system->store && wants_to_know(component))
                submit(component, TR_STORE_NAMES_LEFT, NULL, on_left);
}
