/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: what is common to everything a handle names. How it is reached, how
 * it ends, who waits for its end, and what is remembered of it after.
 *
 * Invariant: `ended` is set once, and from then on nobody is added to
 * `watchers`: whoever asks later is answered at once.
 */
#include "daemon/core/target.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/random.h"
#include "daemon/core/session.h"
#include "daemon/core/system.h"
#include "proto/limits.h"

static const char *const kind_texts[] = {
        [TR_TARGET_ACTOR] = "actor",
        [TR_TARGET_POOL] = "pool",
        [TR_TARGET_WORKER] = "worker",
        [TR_TARGET_CONNECTION] = "connection",
        [TR_TARGET_COMPONENT] = "component",
        [TR_TARGET_REPLICA] = "replica",
};

const char *tr_stop_reason_text(enum tr_stop_reason reason) {
        static const char *const texts[] = {
                [TR_STOP_ASKED] = "stop",
                [TR_STOP_SESSION] = "session",
                [TR_STOP_SHUTDOWN] = "shutdown",
        };
        return texts[reason];
}

int tr_target_init(struct tr_target *target, const struct tr_target_ops *ops, struct tr_system *system, uint32_t owner_uid,
                   const char *label, const char *actor) {
        struct tr_handle handle;
        int r = tr_random_bytes(handle.bytes, sizeof(handle.bytes));
        if (r < 0)
                return tr_error_fold(r);
        handle.bytes[0] = ops->kind == TR_TARGET_POOL ? handle.bytes[0] | 0x80 : handle.bytes[0] & 0x7f;

        char *label_copy = strdup(label);
        char *actor_copy = strdup(actor);
        if (!label_copy || !actor_copy) {
                free(label_copy);
                free(actor_copy);
                return tr_error_origin(-ENOMEM);
        }

        *target = (struct tr_target){
                .ops = ops,
                .system = system,
                .handle = handle,
                .owner_uid = owner_uid,
                .label = label_copy,
                .asked_for = actor_copy,
                .actor = actor_copy,
                .since_ms = tr_clock_wall_ms(),
        };
        atomic_init(&target->refs, 1);
        tr_lock_init(&target->lock);
        tr_list_init(&target->session_link);
        tr_list_init(&target->watchers);
        return 0;
}

int tr_target_name_actor(struct tr_target *target, const char *actor) {
        char *copy;

        if (strcmp(tr_target_actor(target), actor) == 0)
                return 0;
        copy = strdup(actor);
        if (!copy)
                return tr_error_origin(-ENOMEM);
        /* release: whoever sees where the text is sees the text */
        atomic_store_explicit(&target->actor, copy, memory_order_release);
        return 0;
}

void tr_target_deinit(struct tr_target *target) {
        tr_session_unref(target->inner);
        tr_failure_unref(target->failure);
        free(target->label);
        char *actor = atomic_load_explicit(&target->actor, memory_order_relaxed); /* nobody else is left */
        if (actor != target->asked_for)
                free(actor);
        free(target->asked_for);
        tr_lock_deinit(&target->lock);
}

struct tr_target *tr_target_ref(struct tr_target *target) {
        /* relaxed: who copies a reference has one */
        if (target)
                atomic_fetch_add_explicit(&target->refs, 1, memory_order_relaxed);
        return target;
}

void tr_target_unref(struct tr_target *target) {
        if (target)
                tr_target_unref_many(target, 1);
}

void tr_target_unref_many(struct tr_target *target, uint32_t count) {
        /* acq_rel: the last one sees all that the others did with it */
        if (atomic_fetch_sub_explicit(&target->refs, count, memory_order_acq_rel) != count)
                return;
        tr_registry_remove(&target->system->registry, target);
        target->ops->free(target);
}

struct tr_failure *tr_post_failure(enum tr_post post) {
        switch (post) {
        case TR_POST_FULL:
                return tr_failure_new(TR_CODE_MAILBOX_FULL, "the mailbox is full");
        case TR_POST_TOO_LARGE:
                return tr_failure_new(TR_CODE_TOO_LARGE, "the message is larger than the mailbox may hold (mailbox_bytes)");
        case TR_POST_CLOSED:
                return tr_failure_new(TR_CODE_NOT_RUNNING, "the actor is not running");
        case TR_POST_NO_MEMORY:
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the message");
        case TR_POST_OK:
                break;
        }
        return tr_failure_new(TR_CODE_INTERNAL, "a message that was taken was also refused");
}

enum tr_post tr_target_post(struct tr_target *target, struct tr_message *message) {
        struct tr_list list = TR_LIST_INIT(list);
        tr_list_append(&list, &message->link);
        enum tr_post post = target->ops->post(target, &list);
        if (post != TR_POST_OK)
                tr_list_unlink(&message->link);
        return post;
}

void tr_target_set_stillborn(struct tr_target *target, struct tr_failure *failure) {
        tr_lock_acquire(&target->lock);
        if (!target->ended) {
                target->stillborn = true;
                target->failure = tr_failure_ref(failure);
        }
        tr_lock_release(&target->lock);
}

struct tr_failure *tr_target_refusal(struct tr_target *target, enum tr_post post) {
        struct tr_failure *failure = NULL;
        if (post == TR_POST_CLOSED) {
                tr_lock_acquire(&target->lock);
                failure = target->stillborn ? tr_failure_ref(target->failure) : NULL;
                tr_lock_release(&target->lock);
                if (failure)
                        atomic_store(&target->heard, true);
        }
        return failure ? failure : tr_post_failure(post);
}

void tr_target_refuse(struct tr_target *target, struct tr_message *take_message, enum tr_post post) {
        struct tr_failure *failure = tr_target_refusal(target, post);
        tr_message_reject(take_message, failure, TR_RAN_NO);
        tr_failure_unref(failure);
        tr_message_unref(take_message);
}

enum tr_post tr_target_send(struct tr_target *target, struct tr_message *take_message) {
        enum tr_post post = tr_target_post(target, take_message);
        if (post != TR_POST_OK)
                tr_target_refuse(target, take_message, post);
        return post;
}

void tr_target_tell_dropped(struct tr_target *target, const struct tr_message *message, const struct tr_failure *failure) {
        const struct tr_refused refused = tr_refused_message(target, message, failure);
        tr_system_tell_refused(target->system, &refused);
}

bool tr_target_abandon(struct tr_target *target, struct tr_message *message, struct tr_failure *failure,
                       enum tr_ran ran_begun) {
        bool begun;
        if (!tr_message_settle(message, &begun))
                return false;
        if (message->asker)
                message->asker->ops->reject(message->asker, message, failure, begun ? ran_begun : TR_RAN_NO, false);
        else if (!begun)
                tr_target_tell_dropped(target, message, failure);
        return message->asker;
}

/* Answers a message that waited for the end. */
static void watcher_tell(struct tr_target *target, struct tr_message *message, struct tr_failure *failure) {
        static const uint8_t nil = 0xc0;
        /* What it waited for has happened: the failure's own `ran` is told, not that of a message nobody looked at. */
        if (tr_message_begin(message)) {
                if (failure)
                        atomic_store(&target->heard, true);
                if (failure)
                        tr_message_reject(message, failure, failure->ran);
                else
                        tr_message_resolve(message, &nil, sizeof(nil), false);
        }
        tr_message_unref(message);
}

/*
 * Drops the watchers that a deadline or a cancel has settled. Done whenever their number has doubled since the last time, so that
 * asking again and again costs constant time each and no memory in the end.
 */
static void target_sweep_locked(struct tr_target *target, struct tr_list *ret_settled) TR_REQUIRES(target->lock) {
        if (target->watchers_count < 2 * target->watchers_swept + 16)
                return;
        struct tr_message *message;
        tr_list_for_each(message, &target->watchers, link) {
                if (tr_message_state(message) != TR_MESSAGE_SETTLED)
                        continue;
                tr_list_unlink(&message->link);
                tr_list_append(ret_settled, &message->link);
                target->watchers_count--;
        }
        target->watchers_swept = target->watchers_count;
}

static void drop_messages(struct tr_list *list) {
        struct tr_message *message;
        tr_list_for_each(message, list, link) {
                tr_list_unlink(&message->link);
                tr_message_unref(message);
        }
}

void tr_target_watch(struct tr_target *target, struct tr_message *take_message) {
        struct tr_list settled = TR_LIST_INIT(settled);
        struct tr_failure *failure = NULL;

        tr_lock_acquire(&target->lock);
        bool ended = target->ended;
        if (ended) {
                failure = tr_failure_ref(target->failure);
        } else {
                target_sweep_locked(target, &settled);
                tr_list_append(&target->watchers, &take_message->link);
                target->watchers_count++;
        }
        tr_lock_release(&target->lock);

        drop_messages(&settled);
        if (ended)
                watcher_tell(target, take_message, failure);
        tr_failure_unref(failure);
}

bool tr_target_end(struct tr_target *target, struct tr_failure *failure) {
        struct tr_list watchers = TR_LIST_INIT(watchers);

        tr_lock_acquire(&target->lock);
        bool first = !target->ended;
        if (first) {
                target->ended = true;
                if (!target->stillborn)
                        target->failure = tr_failure_ref(failure);
                tr_list_splice(&watchers, &target->watchers);
                target->watchers_count = 0;
        }
        tr_lock_release(&target->lock);
        if (!first)
                return false;

        /* What others see of the end comes before they are told of it: a name is free and the session is left by then. */
        struct tr_system *system = target->system;
        tr_registry_withdraw(&system->registry, target);
        tr_system_keep_ended(system, target);
        tr_session_leave(target);

        struct tr_message *message;
        tr_list_for_each(message, &watchers, link) {
                tr_list_unlink(&message->link);
                watcher_tell(target, message, failure);
        }
        return true;
}

bool tr_target_has_ended(struct tr_target *target) {
        tr_lock_acquire(&target->lock);
        bool ended = target->ended;
        tr_lock_release(&target->lock);
        return ended;
}

void tr_target_note_stopper(struct tr_target *target, uint32_t uid, int32_t pid, bool kill) {
        tr_lock_acquire(&target->lock);
        if (!target->ended && (kill || target->stopper_pid == 0)) {
                target->stopper_uid = uid;
                target->stopper_pid = pid;
        }
        tr_lock_release(&target->lock);
}

bool tr_target_stopper(struct tr_target *target, uint32_t *ret_uid, int32_t *ret_pid) {
        tr_lock_acquire(&target->lock);
        bool is_known = target->stopper_pid != 0;
        if (is_known) {
                *ret_uid = target->stopper_uid;
                *ret_pid = target->stopper_pid;
        }
        tr_lock_release(&target->lock);
        return is_known;
}

struct tr_log_context tr_target_log_context(const struct tr_target *target, char ret_handle[TR_HANDLE_SHORT + 1]) {
        tr_handle_format_short(&target->handle, ret_handle);
        return (struct tr_log_context){
                .actor = target->label,
                .handle = ret_handle,
                .has_owner = true,
                .owner_uid = target->owner_uid,
        };
}

struct tr_failure *tr_target_failure(struct tr_target *target) {
        tr_lock_acquire(&target->lock);
        struct tr_failure *failure = tr_failure_ref(target->failure);
        tr_lock_release(&target->lock);
        return failure;
}

struct tr_failure *tr_target_take_unheard(struct tr_target *target) {
        struct tr_failure *failure = tr_target_failure(target);
        if (!failure || !atomic_exchange(&target->heard, true))
                return failure;
        tr_failure_unref(failure);
        return NULL;
}

bool tr_target_is_busy(struct tr_target *target) {
        return target->ops->is_busy && target->ops->is_busy(target);
}

/* The pairs that every target has. */
static uint32_t target_write_common(struct tr_target *target, bool plain, struct tr_writer *writer) {
        uint32_t pairs = 0;

        tr_write_text(writer, "handle");
        if (plain) {
                char text[TR_HANDLE_TEXT_MAX + 1];
                size_t len = tr_handle_format(&target->handle, text);
                tr_write_str(writer, text, len);
        } else {
                tr_write_handle(writer, &target->handle);
        }
        tr_write_text(writer, "kind");
        tr_write_text(writer, kind_texts[target->ops->kind]);
        tr_write_text(writer, "name");
        tr_write_string(writer, target->label, strlen(target->label));
        tr_write_text(writer, "since");
        tr_write_int(writer, target->since_ms);
        pairs += 4;
        const char *actor = tr_target_actor(target);
        if (*actor) {
                tr_write_text(writer, "actor");
                tr_write_text(writer, actor);
                pairs++;
        }

        char published[TR_NAME_MAX + 1];
        if (tr_registry_name_of(&target->system->registry, target, published, sizeof(published))) {
                tr_write_text(writer, "published");
                tr_write_text(writer, published);
                pairs++;
        }

        struct tr_session *session = tr_session_around(target);
        if (session) {
                tr_write_text(writer, "session");
                tr_write_text(writer, session->name);
                tr_session_unref(session);
                pairs++;
        }
        return pairs;
}

void tr_target_write_info(struct tr_target *target, bool plain, struct tr_writer *writer) {
        struct tr_writer pairs = TR_WRITER_INIT;
        uint32_t count = target_write_common(target, plain, &pairs);
        count += target->ops->info(target, &pairs);
        tr_write_map(writer, count);
        tr_write_raw(writer, pairs.data, pairs.len);
        if (tr_writer_error(&pairs))
                writer->error = tr_writer_error(&pairs);
        tr_writer_deinit(&pairs);
}
