/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configured actors. Each has a child here: the asker of its actor's init and of its end. Both may be answered on the
 * actor's thread, so they are noted under the child's lock, and the loop thread, where everything else happens, is
 * called.
 *
 * Messages that are still owed an answer hold a reference to the child, so a stuck actor cannot answer into freed
 * memory. Once the child is closed, answers are dropped.
 *
 * What is configured may change: a child that is not there any more stops its actor and goes with it; one that is another now
 * stops its actor and starts the next by the new settings, as soon as the name is free.
 */
#include "daemon/supervisor.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/lock.h"
#include "daemon/base/log.h"
#include "daemon/base/random.h"
#include "daemon/core/actor.h"
#include "daemon/core/backoff.h"
#include "daemon/io/loop.h"

#define BACKOFF_MIN_NS (200 * TR_NS_PER_MS)
#define BACKOFF_MAX_NS (10 * TR_NS_PER_S)
#define BACKOFF_RESET_NS (10 * TR_NS_PER_S)

/* The child's own names for what it asks. */
enum {
        ASK_INIT = 1,
        ASK_DONE = 2,
        ASK_INIT_AGAIN = 3, /* of a replacement */
};

struct child {
        struct tr_asker asker;
        _Atomic uint32_t refs;            /* the supervisor's, and one for each message that it is the asker of */
        struct tr_supervisor *supervisor; /* while it is not closed */

        /* Loop thread. */
        struct tr_list link; /* among the supervisor's */
        struct tr_settings_actor settings; /* its own copy */
        struct tr_settings_actor next;     /* what it is started by next, where it is another */
        bool has_next;
        bool removed; /* it is not configured any more */
        bool matched; /* a reload has found it */
        struct tr_target *target; /* strong; NULL: it does not run */
        struct tr_timer timer;   /* the pause before the next start */
        struct tr_keeper keeper; /* of its published name, which moves to each replacement */
        struct tr_backoff backoff;
        uint64_t began_ns;
        bool settled; /* finished its init, or failed, once */
        bool has_run; /* it was spawned: the next one is a replacement */

        struct tr_lock lock; /* nothing else is acquired under it */
        struct tr_work work;
        bool closed TR_GUARDED_BY(lock);
        bool has_started TR_GUARDED_BY(lock);
        bool has_ended TR_GUARDED_BY(lock);
        struct tr_failure *failure TR_GUARDED_BY(lock); /* how it ended; NULL: orderly */
};

struct tr_supervisor {
        struct tr_supervisor_options options;
        bool stopping;
        bool ready;       /* was said */
        size_t unsettled; /* children */
        struct tr_list children;
};

static void child_ref(struct child *child) {
        /* relaxed: who copies a reference has one */
        atomic_fetch_add_explicit(&child->refs, 1, memory_order_relaxed);
}

static void child_unref_many(struct child *child, uint32_t count) {
        /* acq_rel: the last one sees all that the others did with it */
        if (atomic_fetch_sub_explicit(&child->refs, count, memory_order_acq_rel) != count)
                return;
        tr_failure_unref(child->failure);
        tr_settings_actor_deinit(&child->settings);
        tr_settings_actor_deinit(&child->next);
        tr_lock_deinit(&child->lock);
        free(child);
}

static const char *child_label(const struct child *child) {
        return child->settings.name ? child->settings.name : child->settings.actor;
}

/* What its actor answers */

static struct child *child_of(struct tr_asker *asker) {
        return tr_container_of(asker, struct child, asker);
}

static void child_told(struct child *child, uint64_t ask, struct tr_failure *failure) {
        tr_lock_acquire(&child->lock);
        if (ask == ASK_DONE) {
                child->has_ended = true;
                child->failure = tr_failure_ref(failure);
        } else {
                child->has_started = true;
        }
        /* under the lock, because the loop may be gone once it is closed */
        if (!child->closed)
                tr_loop_post(child->supervisor->options.loop, &child->work);
        tr_lock_release(&child->lock);
}

static void on_resolve(struct tr_asker *asker, struct tr_message *message, const void *value, size_t bytes, bool more) {
        if (message->ask.id == ASK_INIT_AGAIN)
                tr_system_tell(message->spawned->system,
                               &(struct tr_news){ .event = TR_EVENT_RESTARTED, .target = message->spawned });
        child_told(child_of(asker), message->ask.id, NULL);
}

static void on_reject(struct tr_asker *asker, struct tr_message *message, struct tr_failure *failure, enum tr_ran ran,
                      bool more) {
        /* a failed init is the actor's end, which is told too */
        if (message->ask.id == ASK_DONE)
                child_told(child_of(asker), ASK_DONE, failure);
}

static void on_ref(struct tr_asker *asker) {
        child_ref(child_of(asker));
}

static void on_unref(struct tr_asker *asker, uint32_t count) {
        child_unref_many(child_of(asker), count);
}

static const struct tr_asker_ops child_asker_ops = {
        .resolve = on_resolve,
        .reject = on_reject,
        .ref = on_ref,
        .unref = on_unref,
};

/* Starting */

/* Once, where all children that it began with have settled. */
static void supervisor_tell_ready(struct tr_supervisor *supervisor) {
        if (supervisor->unsettled > 0 || supervisor->stopping || supervisor->ready)
                return;
        supervisor->ready = true;
        supervisor->options.ready(supervisor->options.userdata);
}

static void child_settle(struct child *child) {
        struct tr_supervisor *supervisor = child->supervisor;

        if (child->settled)
                return;
        child->settled = true;
        supervisor->unsettled--;
        supervisor_tell_ready(supervisor);
}

static struct tr_message *child_message(struct child *child, enum tr_message_kind kind, uint64_t ask) {
        const struct tr_settings_actor *settings = &child->settings;
        bool is_init = kind == TR_MESSAGE_INIT;
        struct tr_message *message =
                tr_message_new(kind, is_init ? "init" : "", is_init ? 4 : 0, settings->args.data,
                               is_init ? settings->args.bytes : 0, is_init ? settings->args.count : 0);

        if (!message)
                return NULL;
        child_ref(child);
        message->asker = &child->asker;
        message->ask.id = ask;
        message->caller_uid = child->supervisor->options.system->own_uid;
        return message;
}

/* NULL, or why it could not be started. */
static struct tr_failure *child_spawn(struct child *child) {
        struct tr_system *system = child->supervisor->options.system;
        const struct tr_settings_actor *settings = &child->settings;
        const struct tr_actor_options options = {
                .actor = settings->actor,
                .label = settings->name,
                .publish = settings->publish,
                .keeper = &child->keeper,
                .owner_uid = system->own_uid,
                .heap_bytes = settings->heap_bytes,
                .mailbox = (uint32_t)settings->mailbox,
                .mailbox_bytes = settings->mailbox_bytes,
                .async = (uint32_t)settings->async,
        };
        struct tr_message *init =
                child_message(child, TR_MESSAGE_INIT, child->has_run ? ASK_INIT_AGAIN : ASK_INIT);
        struct tr_message *done = child_message(child, TR_MESSAGE_DONE, ASK_DONE);
        struct tr_failure *failure;
        struct tr_target *target;

        if (!init || !done) {
                tr_message_unref(init);
                tr_message_unref(done);
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
        }
        failure = tr_actor_spawn(system, system->daemon_session, &options, init, &target, NULL);
        if (failure) {
                tr_message_unref(done);
                return failure;
        }
        child->has_run = true;
        tr_target_watch(target, done);
        child->target = target;
        return NULL;
}

static void child_ended(struct child *child, struct tr_failure *failure);

static void child_start(struct child *child) {
        struct tr_failure *failure;

        child->began_ns = tr_clock_ns();
        failure = child_spawn(child);
        if (!failure)
                return;
        child_ended(child, failure);
        tr_failure_unref(failure);
}

static void on_pause_over(struct tr_timer *timer) {
        struct child *child = tr_container_of(timer, struct child, timer);

        if (!child->supervisor->stopping)
                child_start(child);
}

/* Ending */

static bool child_comes_back(const struct child *child, const struct tr_failure *failure) {
        if (child->supervisor->stopping)
                return false;
        switch ((enum tr_restart)child->settings.restart) {
        case TR_RESTART_ALWAYS:
                return true;
        case TR_RESTART_ON_FAULT:
                return failure;
        case TR_RESTART_NEVER:
                break;
        }
        return false;
}

/* The pause before it is started again. */
static uint64_t child_pause_ns(struct child *child, const struct tr_failure *failure) {
        uint64_t now_ns = tr_clock_ns();
        uint32_t random = 0;

        /* without randomness the jitter is the same for all, which is no reason not to start them */
        (void)!tr_random_bytes(&random, sizeof(random));
        return failure ? tr_backoff_failed(&child->backoff, child->began_ns, now_ns, random)
                       : tr_backoff_ended(&child->backoff, child->began_ns, now_ns, random);
}

/* It is nothing any more, but for the messages that have it. */
static void child_drop(struct child *child) {
        struct tr_supervisor *supervisor = child->supervisor;

        tr_system_clear_timer(supervisor->options.system, &child->timer);
        tr_lock_acquire(&child->lock);
        child->closed = true;
        tr_loop_forget(supervisor->options.loop, &child->work);
        tr_lock_release(&child->lock);
        tr_registry_release(&supervisor->options.system->registry, &child->keeper);
        tr_list_unlink(&child->link);
        tr_target_unref(tr_steal(child->target));
        child_unref_many(child, 1);
}

static bool same_text(const char *one, const char *other) {
        return one && other ? strcmp(one, other) == 0 : one == other;
}

/* Starts it by its next settings. It does not run. */
static void child_change(struct child *child) {
        struct tr_supervisor *supervisor = child->supervisor;

        tr_system_clear_timer(supervisor->options.system, &child->timer);
        if (!same_text(child->settings.publish, child->next.publish))
                tr_registry_release(&supervisor->options.system->registry, &child->keeper);
        tr_settings_actor_deinit(&child->settings);
        child->settings = child->next;
        child->next = (struct tr_settings_actor){ 0 };
        child->has_next = false;
        tr_backoff_init(&child->backoff, BACKOFF_MIN_NS, BACKOFF_MAX_NS, BACKOFF_RESET_NS);
        child_start(child);
}

static void child_log_down(struct child *child, const struct tr_failure *failure, const char *rest) {
        const struct tr_log_context context = { .actor = child_label(child) };

        tr_log_with(failure ? TR_LOG_WARNING : TR_LOG_INFO, &context, "configured actor: %s%s%s; %s",
                    failure ? tr_code_text(failure->code) : "", failure ? ": " : "",
                    failure ? failure->message : "it stopped", rest);
}

static void child_ended(struct child *child, struct tr_failure *failure) {
        const struct tr_log_context context = { .actor = child_label(child) };
        bool was_slowed = child->backoff.slowed;
        uint64_t pause_ns;
        char rest[64];

        tr_target_unref(tr_steal(child->target));
        if (child->removed && !child->supervisor->stopping) {
                child_log_down(child, failure, "it is not configured any more");
                child_settle(child);
                child_drop(child);
                return;
        }
        if (child->has_next && !child->supervisor->stopping) {
                child_log_down(child, failure, "it is started by its new settings");
                child_change(child);
                return;
        }
        if (!child_comes_back(child, failure)) {
                if (!child->supervisor->stopping)
                        child_log_down(child, failure, "it is not started again");
                tr_registry_release(&child->supervisor->options.system->registry, &child->keeper);
                child_settle(child);
                return;
        }
        pause_ns = child_pause_ns(child, failure);
        snprintf(rest, sizeof(rest), "it is started again in %llu ms", (unsigned long long)(pause_ns / TR_NS_PER_MS));
        child_log_down(child, failure, rest);
        if (child->backoff.slowed && !was_slowed)
                tr_log_with(TR_LOG_ERROR, &context,
                            "configured actor: it failed %d times within a minute and is tried once a minute",
                            TR_BACKOFF_FAILURES);
        if (tr_system_set_timer(child->supervisor->options.system, &child->timer, tr_clock_deadline_ns(pause_ns)) < 0)
                tr_log_with(TR_LOG_ERROR, &context, "configured actor: it is not started again, for want of memory");
        child_settle(child);
}

/* What its actor's thread has told. Loop thread. */
static void on_told(struct tr_work *work) {
        struct child *child = tr_container_of(work, struct child, work);
        struct tr_failure *failure;
        bool has_started, has_ended;

        tr_lock_acquire(&child->lock);
        has_started = child->has_started;
        has_ended = child->has_ended;
        failure = child->failure;
        child->has_started = child->has_ended = false;
        child->failure = NULL;
        tr_lock_release(&child->lock);

        if (has_started)
                child_settle(child);
        if (has_ended)
                child_ended(child, failure);
        tr_failure_unref(failure);
}

/* All of them */

/* Not among them yet. NULL: out of memory. */
static struct child *child_new(struct tr_supervisor *supervisor, const struct tr_settings_actor *settings) {
        struct child *child = calloc(1, sizeof(*child));

        if (!child || tr_settings_actor_copy(settings, &child->settings) < 0) {
                free(child);
                return NULL;
        }
        child->asker.ops = &child_asker_ops;
        atomic_init(&child->refs, 1);
        child->supervisor = supervisor;
        child->timer.fire = on_pause_over;
        tr_list_init(&child->link);
        tr_backoff_init(&child->backoff, BACKOFF_MIN_NS, BACKOFF_MAX_NS, BACKOFF_RESET_NS);
        tr_lock_init(&child->lock);
        tr_work_init(&child->work, on_told);
        return child;
}

static void children_free(struct tr_list *children) {
        struct child *child;

        tr_list_for_each(child, children, link) {
                tr_list_unlink(&child->link);
                child_unref_many(child, 1);
        }
}

/* A child for each. 0 or -ENOMEM, and then there is none. */
static int children_new(struct tr_supervisor *supervisor, const struct tr_settings_actors *actors,
                        struct tr_list *children) {
        for (size_t i = 0; i < actors->count; i++) {
                struct child *child = child_new(supervisor, &actors->list[i]);

                if (!child) {
                        children_free(children);
                        return tr_error_origin(-ENOMEM);
                }
                tr_list_append(children, &child->link);
        }
        return 0;
}

int tr_supervisor_new(const struct tr_supervisor_options *options, struct tr_supervisor **ret_supervisor) {
        struct tr_supervisor *supervisor = calloc(1, sizeof(*supervisor));
        int r;

        if (!supervisor)
                return tr_error_origin(-ENOMEM);
        supervisor->options = *options;
        supervisor->unsettled = options->actors->count;
        tr_list_init(&supervisor->children);
        r = children_new(supervisor, options->actors, &supervisor->children);
        if (r < 0) {
                free(supervisor);
                return tr_error_fold(r);
        }
        *ret_supervisor = supervisor;
        return 0;
}

void tr_supervisor_start(struct tr_supervisor *supervisor) {
        struct child *child;

        tr_list_for_each(child, &supervisor->children, link)
                child_start(child);
        supervisor_tell_ready(supervisor);
}

/* Reloading */

static const struct tr_settings_actor *child_wanted(const struct child *child) {
        return child->has_next ? &child->next : &child->settings;
}

/* How well a child and an entry go together; 0: not at all. */
enum {
        MATCH_SAME = 4, /* nothing has changed */
        MATCH_PUBLISH = 3,
        MATCH_NAME = 2,
        MATCH_ACTOR = 1,
};

static int match(const struct child *child, const struct tr_settings_actor *settings) {
        const struct tr_settings_actor *wanted = child_wanted(child);

        if (!child->removed && tr_settings_actor_equals(wanted, settings))
                return MATCH_SAME;
        if (wanted->publish || settings->publish)
                return same_text(wanted->publish, settings->publish) ? MATCH_PUBLISH : 0;
        if (wanted->name || settings->name)
                return same_text(wanted->name, settings->name) ? MATCH_NAME : 0;
        return strcmp(wanted->actor, settings->actor) == 0 ? MATCH_ACTOR : 0;
}

static struct child *find_match(struct tr_supervisor *supervisor, const struct tr_settings_actor *settings, int kind) {
        struct child *child;

        tr_list_for_each(child, &supervisor->children, link)
                if (!child->matched && match(child, settings) == kind)
                        return child;
        return NULL;
}

static void child_stop(struct child *child) {
        child->target->ops->stop(child->target, TR_STOP_ASKED, child->supervisor->options.system->limits.grace_ns);
}

/* It is by other settings from its next start on, which is as soon as may be. */
static void child_renew(struct child *child, struct tr_settings_actor *take_settings) {
        tr_settings_actor_deinit(&child->next);
        child->next = *take_settings;
        *take_settings = (struct tr_settings_actor){ 0 };
        child->has_next = true;
        child->removed = false;
        if (child->target)
                child_stop(child);
        else
                child_change(child);
}

static void child_remove(struct child *child) {
        child->removed = true;
        if (child->target)
                child_stop(child);
        else
                child_ended(child, NULL);
}

/* Those that go together in this way: what is wanted is taken out of the list. */
static void take_matches(struct tr_supervisor *supervisor, struct tr_list *wanted, int kind) {
        struct child *one;

        tr_list_for_each(one, wanted, link) {
                struct child *child = find_match(supervisor, &one->settings, kind);

                if (!child)
                        continue;
                child->matched = true;
                tr_list_unlink(&one->link);
                if (kind != MATCH_SAME)
                        child_renew(child, &one->settings);
                child_unref_many(one, 1);
        }
}

static void remove_unmatched(struct tr_supervisor *supervisor) {
        struct child *child;

        tr_list_for_each(child, &supervisor->children, link) {
                bool remove = !child->matched && !child->removed;

                child->matched = false;
                if (remove)
                        child_remove(child);
        }
}

int tr_supervisor_reload(struct tr_supervisor *supervisor, const struct tr_settings_actors *actors) {
        struct tr_list wanted = TR_LIST_INIT(wanted);
        struct child *child;
        int r = children_new(supervisor, actors, &wanted);

        if (r < 0)
                return tr_error_fold(r);
        for (int kind = MATCH_SAME; kind >= MATCH_ACTOR; kind--)
                take_matches(supervisor, &wanted, kind);
        remove_unmatched(supervisor);
        tr_list_for_each(child, &wanted, link) {
                tr_list_unlink(&child->link);
                tr_list_append(&supervisor->children, &child->link);
                supervisor->unsettled++;
                child_start(child);
        }
        return 0;
}

/* The end */

void tr_supervisor_stop(struct tr_supervisor *supervisor) {
        struct child *child;

        supervisor->stopping = true;
        tr_list_for_each(child, &supervisor->children, link)
                tr_system_clear_timer(supervisor->options.system, &child->timer);
}

void tr_supervisor_free(struct tr_supervisor *supervisor) {
        struct child *child;

        if (!supervisor)
                return;
        tr_supervisor_stop(supervisor);
        tr_list_for_each(child, &supervisor->children, link)
                child_drop(child);
        free(supervisor);
}
