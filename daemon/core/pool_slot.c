/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: how a worker comes into one, and what happens when it leaves.
 *
 * A slot is filled when the pool starts, and again on the loop thread when the pause after its last worker is over. Pauses are
 * each slot's own, so one that keeps failing does not slow its neighbours.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/core/actor.h"
#include "daemon/core/pool.h"
#include "daemon/core/retry.h"
#include "daemon/core/session.h"
#include "daemon/core/system.h"

/* The time that a worker's init has. */
#define INIT_NS (10 * TR_NS_PER_S)

void tr_slot_write_name(const struct tr_slot *slot, uint32_t incarnation, char ret_name[32]) {
        if (incarnation > 1)
                snprintf(ret_name, 32, "w-%" PRIu32 ".%" PRIu32, slot->number, incarnation - 1);
        else
                snprintf(ret_name, 32, "w-%" PRIu32, slot->number);
}

/* The timer */

static void on_slot_timer(struct tr_timer *timer) {
        struct tr_slot *slot = tr_container_of(timer, struct tr_slot, timer);
        struct tr_pool *pool = slot->pool;
        struct tr_target *late = NULL;
        bool start = false;

        tr_lock_acquire(&pool->lock);
        if (tr_clock_ns() >= slot->due_ns) {
                start = slot->state == TR_SLOT_VACANT && !pool->over && !(pool->stopping && pool->queue_count == 0);
                late = slot->state == TR_SLOT_STARTING && slot->worker ? tr_target_ref(&slot->worker->target) : NULL;
        }
        tr_lock_release(&pool->lock);

        if (late)
                late->ops->kill(late);
        tr_target_unref(late);
        if (start)
                tr_slot_start(slot);
        tr_target_unref(&pool->target);
}

void tr_slot_clear_timer(struct tr_slot *slot) {
        if (tr_system_clear_timer(slot->pool->target.system, &slot->timer))
                tr_target_unref(&slot->pool->target);
}

static void slot_set_timer(struct tr_slot *slot, uint64_t due_ns) {
        struct tr_pool *pool = slot->pool;
        tr_slot_clear_timer(slot);
        tr_target_ref(&pool->target);
        int r = tr_system_set_timer(pool->target.system, &slot->timer, due_ns);
        /* it is reserved: without it the slot would be lost */
        assert(r == 0);
        (void)r;
}

void tr_slot_init(struct tr_slot *slot, struct tr_pool *pool, uint32_t number) {
        slot->pool = pool;
        slot->number = number;
        slot->timer.fire = on_slot_timer;
        tr_list_init(&slot->free_link);
}

/* Starting */

/* NULL, or why there is no worker. */
static struct tr_failure *slot_spawn(struct tr_slot *slot, const char *name) {
        struct tr_pool *pool = slot->pool;
        struct tr_session *session = tr_session_inside(&pool->target);
        struct tr_message *init =
                tr_message_new(TR_MESSAGE_INIT, "init", 4, pool->args, pool->args_bytes, pool->args_count);
        const struct tr_actor_options options = {
                .actor = pool->target.asked_for,
                .label = name,
                .owner_uid = pool->target.owner_uid,
                .heap_bytes = pool->heap_bytes,
                .mailbox = pool->mailbox,
                .mailbox_bytes = pool->mailbox_bytes,
                .async = pool->async,
                .slot = slot,
        };
        struct tr_target *target;
        if (!session || !init) {
                tr_session_unref(session);
                tr_message_unref(init);
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
        }
        init->internal = pool->args_internal;
        init->caller_uid = pool->target.owner_uid;
        struct tr_failure *failure = tr_actor_spawn(pool->target.system, session, &options, init, &target, NULL);
        tr_session_unref(session);
        if (!failure)
                tr_target_unref(target);
        return failure;
}

static bool slot_down(struct tr_slot *slot, uint32_t incarnation, struct tr_failure *failure);

void tr_slot_start(struct tr_slot *slot) {
        struct tr_pool *pool = slot->pool;
        char name[32];
        tr_lock_acquire(&pool->lock);
        bool start = slot->state == TR_SLOT_VACANT && !pool->over && !pool->killed;
        uint32_t incarnation = slot->incarnation + 1;
        if (start) {
                slot->state = TR_SLOT_STARTING;
                slot->incarnation = incarnation;
                slot->began_ns = tr_clock_ns();
                slot->due_ns = slot->began_ns + INIT_NS;
                pool->occupied++;
        }
        uint64_t due_ns = slot->due_ns;
        tr_lock_release(&pool->lock);
        if (!start)
                return;
        if (incarnation > 1)
                atomic_fetch_add_explicit(&pool->restarts_total, 1, memory_order_relaxed);
        slot_set_timer(slot, due_ns);
        tr_slot_write_name(slot, incarnation, name);
        struct tr_failure *failure = slot_spawn(slot, name);
        if (failure && slot_down(slot, incarnation, failure))
                tr_slot_gone(slot);
        tr_failure_unref(failure);
}

void tr_slot_enter(struct tr_slot *slot, struct tr_actor *worker) {
        tr_target_ref(&worker->target);
        tr_lock_acquire(&slot->pool->lock);
        slot->worker = worker;
        tr_lock_release(&slot->pool->lock);
        atomic_store_explicit(&slot->in_progress, 0, memory_order_relaxed);
}

static void renew_next(struct tr_pool *pool);

void tr_slot_started(struct tr_slot *slot, struct tr_actor *worker) {
        static const uint8_t nil = 0xc0;
        struct tr_pool *pool = slot->pool;
        tr_lock_acquire(&pool->lock);
        if (slot->worker != worker) {
                tr_lock_release(&pool->lock); /* it was given up in its init, and has come back */
                return;
        }
        slot->state = TR_SLOT_RUNNING;
        slot->renewing = false;
        slot->due_ns = TR_NEVER;
        bool first = !pool->has_started, again = slot->incarnation > 1;
        pool->has_started = true;
        pool->running++;
        struct tr_message *start = pool->start;
        pool->start = NULL;
        bool stop = pool->workers_stopped;
        enum tr_stop_reason reason = pool->stop_reason;
        tr_lock_release(&pool->lock);

        tr_slot_clear_timer(slot);
        if (again)
                tr_system_tell(pool->target.system,
                               &(struct tr_news){ .event = TR_EVENT_RESTARTED, .target = &worker->target });
        /* without memory for it the pool is called what was asked for */
        if (first)
                (void)!tr_target_name_actor(&pool->target, tr_target_actor(&worker->target));
        if (first)
                tr_system_tell(pool->target.system,
                               &(struct tr_news){ .event = TR_EVENT_STARTED, .target = &pool->target });
        if (start)
                tr_message_resolve(start, &nil, sizeof(nil), false);
        tr_message_unref(start);
        if (stop)
                worker->target.ops->stop(&worker->target, reason, TR_NEVER);
        renew_next(pool);
}

/* Renewal */

/* The first slot whose worker is to be replaced now, with a reference to that; NULL: there is none, or one is being replaced. */
static struct tr_target *take_next_locked(struct tr_pool *pool) TR_REQUIRES(pool->lock) {
        struct tr_slot *found = NULL;
        for (uint32_t i = 0; i < pool->workers; i++) {
                struct tr_slot *slot = &pool->slots[i];
                if (slot->renewing)
                        return NULL;
                if (!found && slot->renew && slot->state == TR_SLOT_RUNNING)
                        found = slot;
        }
        if (!found || pool->stopping)
                return NULL;
        found->renew = false;
        found->renewing = true;
        return tr_target_ref(&found->worker->target);
}

static void renew_next(struct tr_pool *pool) {
        tr_lock_acquire(&pool->lock);
        struct tr_target *worker = take_next_locked(pool);
        tr_lock_release(&pool->lock);
        if (worker)
                worker->ops->stop(worker, TR_STOP_ASKED, pool->target.system->limits.grace_ns);
        tr_target_unref(worker);
}

void tr_pool_renew(struct tr_pool *pool) {
        tr_lock_acquire(&pool->lock);
        for (uint32_t i = 0; i < pool->workers; i++)
                pool->slots[i].renew = pool->slots[i].state != TR_SLOT_VACANT && !pool->slots[i].renewing;
        tr_lock_release(&pool->lock);
        renew_next(pool);
}

/* Leaving */

static void slot_log_down(const struct tr_slot *slot, uint32_t incarnation, const struct tr_failure *failure,
                          uint64_t pause_ns) {
        char name[32];
        tr_slot_write_name(slot, incarnation, name);
        const char *code = failure ? tr_code_text(failure->code) : "stopped";
        tr_log(failure ? TR_LOG_WARNING : TR_LOG_INFO,
               "pool %s: worker %s: %s: %s; it is replaced in %" PRIu64 " ms", slot->pool->target.label, name, code,
               failure ? failure->message : "it stopped", pause_ns / TR_NS_PER_MS);
}

static void slot_tell_given_up(const struct tr_slot *slot, const struct tr_failure *failure) {
        struct tr_target *target = &slot->pool->target;
        char name[32];
        tr_slot_write_name(slot, 1, name);
        tr_log(TR_LOG_ERROR, "pool %s: slot %s failed %d times within a minute and is tried once a minute", target->label, name,
               TR_BACKOFF_FAILURES);
        tr_system_tell(target->system, &(struct tr_news){
                                               .event = TR_EVENT_SLOT_GIVEN_UP,
                                               .target = target,
                                               .failure = failure,
                                               .slot = name,
                                       });
}

/* Whether the pool is done for, because no first start went well. */
static bool pool_count_first_failure_locked(struct tr_pool *pool, struct tr_slot *slot, struct tr_failure *failure)
        TR_REQUIRES(pool->lock) {
        if (pool->has_started || pool->persistent || pool->stopping || slot->incarnation != 1 || !failure)
                return false;
        if (++pool->first_failures < pool->workers)
                return false;
        pool->stopping = pool->workers_stopped = true;
        pool->failure = tr_failure_ref(failure);
        return true;
}

/* The worker of that incarnation ends, or could not be made. False where that was told already. */
static bool slot_down(struct tr_slot *slot, uint32_t incarnation, struct tr_failure *failure) {
        struct tr_pool *pool = slot->pool;
        uint64_t pause_ns = 0;
        bool was_given_up = false, given_up = false;

        tr_lock_acquire(&pool->lock);
        if (slot->incarnation != incarnation || slot->state == TR_SLOT_VACANT) {
                tr_lock_release(&pool->lock);
                return false;
        }
        /* it was told to, so that another may come: at once */
        bool renewed = slot->renewing && slot->state == TR_SLOT_RUNNING;
        pool->running -= slot->state == TR_SLOT_RUNNING;
        slot->state = TR_SLOT_VACANT;
        slot->renew = false;
        struct tr_actor *worker = slot->worker;
        slot->worker = NULL;
        tr_list_unlink(&slot->free_link);
        atomic_store_explicit(&slot->free, false, memory_order_relaxed);
        bool failed = pool_count_first_failure_locked(pool, slot, failure);
        bool comes_back = !pool->stopping || (!pool->workers_stopped && pool->queue_count > 0);
        if (comes_back) {
                was_given_up = slot->backoff.slowed;
                pause_ns = renewed ? 0 : tr_retry_pause_ns(&slot->backoff, slot->began_ns, failure);
                given_up = slot->backoff.slowed && !was_given_up;
                slot->due_ns = tr_clock_deadline_ns(pause_ns);
        }
        uint64_t due_ns = slot->due_ns;
        tr_lock_release(&pool->lock);

        if (failure)
                atomic_fetch_add_explicit(&pool->faults_total, 1, memory_order_relaxed);
        if (failed)
                tr_target_set_stillborn(&pool->target, failure);
        tr_slot_clear_timer(slot);
        if (comes_back) {
                slot_log_down(slot, incarnation, failure, pause_ns);
                if (given_up)
                        slot_tell_given_up(slot, failure);
                slot_set_timer(slot, due_ns);
        }
        if (worker)
                tr_target_unref(&worker->target);
        return true;
}

void tr_slot_gone(struct tr_slot *slot) {
        tr_lock_acquire(&slot->pool->lock);
        slot->pool->occupied--;
        tr_lock_release(&slot->pool->lock);
        tr_pool_try_end(slot->pool);
}

bool tr_slot_left(struct tr_slot *slot, struct tr_actor *worker, struct tr_failure *failure, struct tr_list *left) {
        struct tr_pool *pool = slot->pool;
        tr_lock_acquire(&pool->lock);
        bool is_in_it = slot->worker == worker;
        uint32_t incarnation = slot->incarnation;
        struct tr_message *message;
        if (is_in_it && !pool->killed) {
                tr_list_for_each(message, left, link) {
                        pool->queue_count++;
                        pool->queue_bytes += tr_message_bytes(message);
                }
                tr_list_splice(&pool->queue, left);
        }
        tr_lock_release(&pool->lock);
        if (!is_in_it)
                return false;
        tr_pool_call_free(pool);
        return slot_down(slot, incarnation, failure);
}
