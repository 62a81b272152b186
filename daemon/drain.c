/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draining goes in rounds: all actors, pools and components that are there are told to stop, and each is asked when it has ended. When the
 * last answer of a round has come another begins, because an actor that was being started when the first began may have
 * come since; the round that finds nobody is the last. Those who have a supervisor are left to it, and to the next round
 * where it could not see to them.
 *
 * A watch is told last of all that an actor owes, so when a round is over everybody has been answered.
 */
#include "daemon/drain.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/core/actor.h"
#include "daemon/core/component.h"
#include "daemon/core/session.h"
#include "daemon/io/loop.h"

/* Where memory is short at the end, it may be there again when some actors have ended. */
#define RETRY_NS (100 * TR_NS_PER_MS)

struct tr_drain {
        struct tr_asker asker; /* of the watches */
        _Atomic uint32_t refs; /* the owner's, and one for each watch: whoever told one still puts it away */
        struct tr_loop *loop;
        struct tr_system *system;
        void (*done)(void *userdata);
        void *userdata;
        struct tr_work work;   /* the round is over */
        struct tr_timer retry; /* the round could not be begun */
        uint64_t deadline_ns;  /* of the grace */
        bool hurried;
        _Atomic uint32_t waiting; /* answers of the round that have not come, and one while it begins */
};

static void drain_told(struct tr_drain *drain) {
        /* acq_rel: the loop sees what whoever is told before has done */
        if (atomic_fetch_sub_explicit(&drain->waiting, 1, memory_order_acq_rel) == 1)
                tr_loop_post(drain->loop, &drain->work);
}

static void on_resolve(struct tr_asker *asker, struct tr_message *message, const void *value, size_t bytes, bool more) {
        drain_told(tr_container_of(asker, struct tr_drain, asker));
}

static void on_reject(struct tr_asker *asker, struct tr_message *message, struct tr_failure *failure, enum tr_ran ran,
                      bool more) {
        drain_told(tr_container_of(asker, struct tr_drain, asker));
}

static void drain_ref(struct tr_drain *drain) {
        /* relaxed: who copies a reference has one */
        atomic_fetch_add_explicit(&drain->refs, 1, memory_order_relaxed);
}

static void drain_unref(struct tr_drain *drain) {
        /* acq_rel: the last one sees all that the others did with it */
        if (atomic_fetch_sub_explicit(&drain->refs, 1, memory_order_acq_rel) == 1)
                free(drain);
}

static void on_ref(struct tr_asker *asker) {
        drain_ref(tr_container_of(asker, struct tr_drain, asker));
}

static void on_unref(struct tr_asker *asker, uint32_t count) {
        while (count--)
                drain_unref(tr_container_of(asker, struct tr_drain, asker));
}

static const struct tr_asker_ops drain_asker_ops = {
        .resolve = on_resolve,
        .reject = on_reject,
        .ref = on_ref,
        .unref = on_unref,
};

static void drain_stop(struct tr_drain *drain, struct tr_target *target) {
        uint64_t now_ns = tr_clock_ns();

        if (drain->hurried || drain->deadline_ns <= now_ns)
                target->ops->kill(target);
        else
                target->ops->stop(target, TR_STOP_SHUTDOWN,
                                  drain->deadline_ns == TR_NEVER ? TR_NEVER : drain->deadline_ns - now_ns);
}

/* 0 or -ENOMEM. */
static int drain_watch(struct tr_drain *drain, struct tr_target *target) {
        struct tr_message *message = tr_message_new(TR_MESSAGE_DONE, "", 0, NULL, 0, 0);

        if (!message)
                return tr_error_origin(-ENOMEM);
        drain_ref(drain);
        message->asker = &drain->asker;
        atomic_fetch_add_explicit(&drain->waiting, 1, memory_order_relaxed);
        tr_target_watch(target, message);
        return 0;
}

static bool is_stuck(struct tr_target *target) {
        struct tr_actor *actor = tr_actor_of(target);
        return actor && atomic_load(&actor->state) == TR_ACTOR_STUCK;
}

static void name_stuck(struct tr_target *target) {
        char handle[TR_HANDLE_SHORT + 1];
        const struct tr_log_context context = tr_target_log_context(target, handle);

        tr_log_with(TR_LOG_WARNING, &context, "the actor is stuck in a C function; nothing waits for it");
}

/* Whether it ends of itself once it is told to stop. */
static bool can_be_stopped(struct tr_target *target) {
        bool is_alive = tr_actor_of(target) || tr_pool_of(target) || tr_component_of(target);
        return is_alive && !is_stuck(target) && !tr_session_is_supervised(target);
}

/* One round over the targets of the list. Answers how many were told, or -ENOMEM. */
static int drain_actors(struct tr_drain *drain, struct tr_target **targets, size_t count) {
        int alive = 0;

        for (size_t i = 0; i < count; i++) {
                if (!can_be_stopped(targets[i]))
                        continue;
                alive++;
                drain_stop(drain, targets[i]);
                if (drain_watch(drain, targets[i]) < 0)
                        return -ENOMEM;
        }
        for (size_t i = 0; alive == 0 && i < count; i++)
                if (is_stuck(targets[i]))
                        name_stuck(targets[i]);
        return alive;
}

/* Memory is short: what was asked is waited for, and then it is tried again. */
static void drain_try_again(struct tr_drain *drain) {
        if (tr_system_set_timer(drain->system, &drain->retry, tr_clock_deadline_ns(RETRY_NS)) < 0)
                drain_told(drain);
}

static void drain_round(struct tr_drain *drain) {
        struct tr_target **targets;
        size_t count;
        int alive;

        /* one more than there are, so that those who answer at once do not end the round before it has begun */
        atomic_store_explicit(&drain->waiting, 1, memory_order_relaxed);
        alive = tr_registry_list(&drain->system->registry, &targets, &count);
        if (alive == 0) {
                alive = drain_actors(drain, targets, count);
                for (size_t i = 0; i < count; i++)
                        tr_target_unref(targets[i]);
                free(targets);
        }
        if (alive > 0)
                drain_told(drain);
        else if (alive < 0)
                drain_try_again(drain);
        else
                drain->done(drain->userdata);
}

static void on_round_over(struct tr_work *work) {
        drain_round(tr_container_of(work, struct tr_drain, work));
}

static void on_retry(struct tr_timer *timer) {
        drain_told(tr_container_of(timer, struct tr_drain, retry));
}

int tr_drain_new(struct tr_loop *loop, struct tr_system *system, void (*done)(void *userdata), void *userdata,
                 struct tr_drain **ret_drain) {
        struct tr_drain *drain = calloc(1, sizeof(*drain));

        if (!drain)
                return tr_error_origin(-ENOMEM);
        drain->asker.ops = &drain_asker_ops;
        atomic_init(&drain->refs, 1);
        drain->loop = loop;
        drain->system = system;
        drain->done = done;
        drain->userdata = userdata;
        drain->retry.fire = on_retry;
        tr_work_init(&drain->work, on_round_over);
        *ret_drain = drain;
        return 0;
}

void tr_drain_free(struct tr_drain *drain) {
        if (!drain)
                return;
        tr_system_clear_timer(drain->system, &drain->retry);
        tr_loop_forget(drain->loop, &drain->work);
        drain_unref(drain);
}

void tr_drain_start(struct tr_drain *drain, uint64_t grace_ns) {
        drain->deadline_ns = tr_clock_deadline_ns(grace_ns);
        tr_system_close(drain->system);
        drain_round(drain);
}

void tr_drain_hurry(struct tr_drain *drain) {
        struct tr_target **targets;
        size_t count;

        drain->hurried = true;
        if (tr_registry_list(&drain->system->registry, &targets, &count) < 0)
                return;
        for (size_t i = 0; i < count; i++) {
                if (tr_actor_of(targets[i]) || tr_component_of(targets[i]))
                        targets[i]->ops->kill(targets[i]);
                tr_target_unref(targets[i]);
        }
        free(targets);
}
