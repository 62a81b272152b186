/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor of configured actors.
 *
 * Each actor has a child here, which asks two things of every incarnation: whether its init has ended, and how it ended
 * itself. The answers come on the actor's thread; they are noted under the child's lock, and the loop thread, where
 * everything else happens, is called.
 *
 * Messages that are still owed an answer hold a reference to the child's supervisor, so a stuck actor cannot answer
 * into freed memory. Once the supervisor is closed, answers are dropped.
 */
#include "daemon/supervisor.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

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
        struct tr_supervisor *supervisor;
        const struct tr_settings_actor *settings;

        /* Loop thread. */
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
        _Atomic uint32_t refs; /* the owner's, and one for each message that a child is the asker of */
        bool stopping;
        size_t unsettled;
        size_t count;
        struct child children[];
};

static void supervisor_ref(struct tr_supervisor *supervisor) {
        /* relaxed: who copies a reference has one */
        atomic_fetch_add_explicit(&supervisor->refs, 1, memory_order_relaxed);
}

static void supervisor_unref(struct tr_supervisor *supervisor) {
        /* acq_rel: the last one sees all that the others did with it */
        if (atomic_fetch_sub_explicit(&supervisor->refs, 1, memory_order_acq_rel) != 1)
                return;
        for (size_t i = 0; i < supervisor->count; i++) {
                tr_failure_unref(supervisor->children[i].failure);
                tr_lock_deinit(&supervisor->children[i].lock);
        }
        free(supervisor);
}

static const char *child_label(const struct child *child) {
        return child->settings->name ? child->settings->name : child->settings->actor;
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
        supervisor_ref(child_of(asker)->supervisor);
}

static void on_unref(struct tr_asker *asker, uint32_t count) {
        while (count--)
                supervisor_unref(child_of(asker)->supervisor);
}

static const struct tr_asker_ops child_asker_ops = {
        .resolve = on_resolve,
        .reject = on_reject,
        .ref = on_ref,
        .unref = on_unref,
};

/* Starting */

static void child_settle(struct child *child) {
        struct tr_supervisor *supervisor = child->supervisor;

        if (child->settled)
                return;
        child->settled = true;
        if (--supervisor->unsettled == 0 && !supervisor->stopping)
                supervisor->options.ready(supervisor->options.userdata);
}

static struct tr_message *child_message(struct child *child, enum tr_message_kind kind, uint64_t ask) {
        const struct tr_settings_actor *settings = child->settings;
        bool is_init = kind == TR_MESSAGE_INIT;
        struct tr_message *message =
                tr_message_new(kind, is_init ? "init" : "", is_init ? 4 : 0, settings->args.data,
                               is_init ? settings->args.bytes : 0, is_init ? settings->args.count : 0);

        if (!message)
                return NULL;
        supervisor_ref(child->supervisor);
        message->asker = &child->asker;
        message->ask.id = ask;
        message->caller_uid = child->supervisor->options.system->own_uid;
        return message;
}

/* NULL, or why it could not be started. */
static struct tr_failure *child_spawn(struct child *child) {
        struct tr_system *system = child->supervisor->options.system;
        const struct tr_settings_actor *settings = child->settings;
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
        tr_target_unref(target);
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
        switch ((enum tr_restart)child->settings->restart) {
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

static void child_ended(struct child *child, struct tr_failure *failure) {
        const struct tr_log_context context = { .actor = child_label(child) };
        enum tr_log_level level = failure ? TR_LOG_WARNING : TR_LOG_INFO;
        const char *how = failure ? failure->message : "it stopped", *code = failure ? tr_code_text(failure->code) : "";
        const char *colon = failure ? ": " : "";
        bool was_slowed = child->backoff.slowed;
        uint64_t pause_ns;

        if (!child_comes_back(child, failure)) {
                if (!child->supervisor->stopping)
                        tr_log_with(level, &context, "configured actor: %s%s%s; it is not started again", code, colon,
                                    how);
                tr_registry_release(&child->supervisor->options.system->registry, &child->keeper);
                child_settle(child);
                return;
        }
        pause_ns = child_pause_ns(child, failure);
        tr_log_with(level, &context, "configured actor: %s%s%s; it is started again in %llu ms", code, colon, how,
                    (unsigned long long)(pause_ns / TR_NS_PER_MS));
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

static void child_init(struct child *child, struct tr_supervisor *supervisor,
                       const struct tr_settings_actor *settings) {
        child->asker.ops = &child_asker_ops;
        child->supervisor = supervisor;
        child->settings = settings;
        child->timer.fire = on_pause_over;
        tr_backoff_init(&child->backoff, BACKOFF_MIN_NS, BACKOFF_MAX_NS, BACKOFF_RESET_NS);
        tr_lock_init(&child->lock);
        tr_work_init(&child->work, on_told);
}

int tr_supervisor_new(const struct tr_supervisor_options *options, struct tr_supervisor **ret_supervisor) {
        size_t count = options->actors->count;
        struct tr_supervisor *supervisor = calloc(1, sizeof(*supervisor) + count * sizeof(supervisor->children[0]));

        if (!supervisor)
                return tr_error_origin(-ENOMEM);
        supervisor->options = *options;
        atomic_init(&supervisor->refs, 1);
        supervisor->count = supervisor->unsettled = count;
        for (size_t i = 0; i < count; i++)
                child_init(&supervisor->children[i], supervisor, &options->actors->list[i]);
        *ret_supervisor = supervisor;
        return 0;
}

void tr_supervisor_start(struct tr_supervisor *supervisor) {
        if (supervisor->count == 0)
                supervisor->options.ready(supervisor->options.userdata);
        for (size_t i = 0; i < supervisor->count; i++)
                child_start(&supervisor->children[i]);
}

void tr_supervisor_stop(struct tr_supervisor *supervisor) {
        supervisor->stopping = true;
        for (size_t i = 0; i < supervisor->count; i++)
                tr_system_clear_timer(supervisor->options.system, &supervisor->children[i].timer);
}

void tr_supervisor_free(struct tr_supervisor *supervisor) {
        if (!supervisor)
                return;
        tr_supervisor_stop(supervisor);
        for (size_t i = 0; i < supervisor->count; i++) {
                struct child *child = &supervisor->children[i];

                tr_lock_acquire(&child->lock);
                child->closed = true;
                tr_loop_forget(supervisor->options.loop, &child->work);
                tr_lock_release(&child->lock);
                tr_registry_release(&supervisor->options.system->registry, &child->keeper);
        }
        supervisor_unref(supervisor);
}
