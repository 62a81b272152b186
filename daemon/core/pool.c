/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a pool: how it starts, what it says of itself, how it stops.
 *
 * An orderly stop closes the pool to new messages, waits until its queue is empty, tells the workers to stop, and ends with the
 * last of them. Workers that have been told still pull what one that faults meanwhile leaves behind.
 *
 * Each slot's timer and the stop timer hold a reference to the pool while they are set, each worker holds one (its slot is
 * in here), and one is that of the pool's being alive, dropped in pool_end().
 */
#include "daemon/core/pool.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/cpu.h"
#include "daemon/core/actor.h"
#include "daemon/core/retry.h"
#include "daemon/core/session.h"
#include "daemon/core/system.h"

#define QUEUE_BYTES_DEFAULT (UINT64_C(64) << 20)

static const char *const routing_texts[] = {
        [TR_ROUTING_ROUND_ROBIN] = "round-robin",
        [TR_ROUTING_SMALLEST_MAILBOX] = "smallest-mailbox",
        [TR_ROUTING_RANDOM] = "random",
        [TR_ROUTING_SHARED] = "shared",
};

const char *tr_routing_text(enum tr_routing routing) {
        return routing_texts[routing];
}

bool tr_routing_parse(const char *text, size_t len, enum tr_routing *ret_routing) {
        for (size_t i = 0; i < sizeof(routing_texts) / sizeof(routing_texts[0]); i++)
                if (strlen(routing_texts[i]) == len && memcmp(routing_texts[i], text, len) == 0) {
                        *ret_routing = (enum tr_routing)i;
                        return true;
                }
        return false;
}

static uint64_t backoff_min_ns(const struct tr_pool_options *options) {
        return options->backoff_min_ns ? options->backoff_min_ns : TR_RETRY_MIN_NS;
}

static uint64_t backoff_max_ns(const struct tr_pool_options *options) {
        return options->backoff_max_ns ? options->backoff_max_ns : TR_RETRY_MAX_NS;
}

bool tr_pool_backoff_is_valid(const struct tr_pool_options *options) {
        return backoff_max_ns(options) >= backoff_min_ns(options);
}

static uint32_t default_workers(void) {
        uint32_t cpus = tr_cpu_count();
        if (cpus == 0)
                return TR_POOL_WORKERS_UNKNOWN;
        return cpus < TR_POOL_WORKERS_MAX ? cpus : TR_POOL_WORKERS_MAX;
}

/* Whatever memory there will be, a slot is filled again, and a stop has its end. */
static int pool_reserve_timers(struct tr_pool *pool) {
        struct tr_system *system = pool->target.system;
        int r = tr_system_reserve_timer(system, &pool->stop_timer);
        for (uint32_t i = 0; i < pool->workers && r == 0; i++)
                r = tr_system_reserve_timer(system, &pool->slots[i].timer);
        return tr_error_fold(r);
}

static void pool_release_timers(struct tr_pool *pool) {
        struct tr_system *system = pool->target.system;
        tr_system_release_timer(system, &pool->stop_timer);
        for (uint32_t i = 0; i < pool->workers; i++)
                tr_system_release_timer(system, &pool->slots[i].timer);
}

static void pool_free(struct tr_target *target) {
        struct tr_pool *pool = (struct tr_pool *)target;
        pool_release_timers(pool);
        tr_failure_unref(pool->failure);
        tr_lock_deinit(&pool->lock);
        tr_target_deinit(target);
        free(pool->args);
        free(pool);
}

static struct tr_pool *pool_new(struct tr_system *system, const struct tr_pool_options *options) {
        uint32_t workers = options->workers ? options->workers : default_workers();
        struct tr_pool *pool = calloc(1, sizeof(*pool) + workers * sizeof(pool->slots[0]));
        uint8_t *args = malloc(options->args_bytes + 1);
        if (!pool || !args || tr_target_init(&pool->target, &tr_pool_target_ops, system, options->owner_uid, options->name,
                                             options->actor) < 0) {
                free(args);
                free(pool);
                return NULL;
        }
        if (options->args_bytes)
                memcpy(args, options->args, options->args_bytes);
        pool->routing = options->routing;
        pool->workers = workers;
        pool->queue_max = options->queue ? options->queue : system->limits.queue;
        pool->queue_bytes_max = options->queue_bytes ? options->queue_bytes : QUEUE_BYTES_DEFAULT;
        pool->heap_bytes = options->heap_bytes;
        pool->mailbox = options->mailbox ? options->mailbox : system->limits.mailbox;
        pool->mailbox_bytes = options->mailbox_bytes ? options->mailbox_bytes : system->limits.mailbox_bytes;
        pool->async = options->async;
        pool->persistent = options->persistent;
        pool->target.owner_pid = options->owner_pid;
        pool->args = args;
        pool->args_bytes = options->args_bytes;
        pool->args_count = options->args_count;
        pool->args_internal = options->args_internal;
        tr_lock_init(&pool->lock);
        tr_list_init(&pool->queue);
        tr_list_init(&pool->free);
        for (uint32_t i = 0; i < workers; i++) {
                tr_slot_init(&pool->slots[i], pool, i + 1);
                tr_backoff_init(&pool->slots[i].backoff, backoff_min_ns(options), backoff_max_ns(options),
                                options->backoff_reset_ns ? options->backoff_reset_ns : TR_RETRY_RESET_NS);
        }
        if (pool_reserve_timers(pool) < 0) {
                tr_target_unref(&pool->target);
                return NULL;
        }
        return pool;
}

/* Registered, with its name, in its session. NULL, or why not. */
static struct tr_failure *pool_introduce(struct tr_pool *pool, struct tr_session *session,
                                         const struct tr_pool_options *options, struct tr_target **ret_holder) {
        struct tr_registry *registry = &pool->target.system->registry;
        const char *name = options->publish ? options->publish : options->name;
        int r = tr_registry_add(registry, &pool->target);
        if (r == 0 && options->replaces)
                r = tr_registry_move(registry, name, strlen(name), options->replaces, &pool->target);
        else if (r == 0)
                r = tr_registry_publish(registry, name, strlen(name), &pool->target, NULL, ret_holder);
        if (r == TR_REGISTRY_TAKEN)
                return tr_failure_new(TR_CODE_TAKEN, "the name %s is published already", name);
        if (r != 0)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
        tr_session_join(session, &pool->target);
        return NULL;
}

struct tr_failure *tr_pool_start(struct tr_system *system, struct tr_session *session, const struct tr_pool_options *options,
                                 struct tr_message *take_start, struct tr_target **ret_target, struct tr_target **ret_holder) {
        struct tr_pool *pool = pool_new(system, options);
        if (!pool) {
                tr_message_unref(take_start);
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
        }
        struct tr_target *target = tr_target_ref(&pool->target);
        struct tr_failure *failure = pool_introduce(pool, session, options, ret_holder);
        if (failure) {
                /* Whoever found the name meanwhile finds it ended. */
                tr_message_unref(take_start);
                tr_lock_acquire(&pool->lock);
                pool->stopping = true;
                tr_lock_release(&pool->lock);
                tr_pool_try_end(pool);
                tr_target_unref(target);
                return failure;
        }
        take_start->spawned = tr_target_ref(target);
        tr_lock_acquire(&pool->lock);
        pool->start = take_start;
        pool->introduced = true;
        tr_lock_release(&pool->lock);
        for (uint32_t i = 0; i < pool->workers; i++)
                tr_slot_start(&pool->slots[i]);
        *ret_target = target;
        return NULL;
}

/* The end */

static void pool_end(struct tr_pool *pool, struct tr_failure *failure, struct tr_list *queue) {
        struct tr_failure *owed = failure ? tr_failure_ref(failure)
                                          : tr_failure_new(TR_CODE_STOPPED, "the pool stopped before it answered this");
        struct tr_message *message;
        if (tr_system_clear_timer(pool->target.system, &pool->stop_timer))
                tr_target_unref(&pool->target);
        atomic_store_explicit(&pool->target.gone, true, memory_order_relaxed);
        /* Before anybody is answered: who hears of the end may start another one under the name at once. */
        tr_registry_withdraw(&pool->target.system->registry, &pool->target);
        tr_list_for_each(message, queue, link) {
                tr_list_unlink(&message->link);
                tr_target_abandon(&pool->target, message, owed, TR_RAN_NO);
                tr_message_unref(message);
        }
        tr_lock_acquire(&pool->lock);
        struct tr_message *start = tr_steal(pool->start);
        bool introduced = pool->introduced;
        tr_lock_release(&pool->lock);
        if (start)
                tr_message_reject(start, owed, owed->ran);
        tr_message_unref(start);
        if (introduced)
                tr_system_tell(pool->target.system, &(struct tr_news){ .event = tr_event_of_end(failure),
                                                                       .target = &pool->target,
                                                                       .failure = failure });
        tr_target_end(&pool->target, failure);
        tr_failure_unref(owed);
        tr_target_unref(&pool->target);
}

void tr_pool_try_end(struct tr_pool *pool) {
        struct tr_list queue = TR_LIST_INIT(queue);
        struct tr_failure *failure = NULL;
        tr_lock_acquire(&pool->lock);
        /* Where a queue is left, slots that are vacant are filled once more to serve it, but for what was killed. */
        bool over = pool->stopping && !pool->over && pool->occupied == 0 &&
                    (pool->workers_stopped || pool->queue_count == 0 || pool->killed);
        if (over) {
                pool->over = true;
                failure = tr_steal(pool->failure);
                tr_list_splice(&queue, &pool->queue);
                pool->queue_count = 0;
                pool->queue_bytes = 0;
        }
        tr_lock_release(&pool->lock);
        if (!over)
                return;
        for (uint32_t i = 0; i < pool->workers; i++)
                tr_slot_clear_timer(&pool->slots[i]);
        pool_end(pool, failure, &queue);
        tr_failure_unref(failure);
}

/* A reference to the worker in a slot, or NULL. */
static struct tr_target *slot_worker(struct tr_slot *slot) {
        tr_lock_acquire(&slot->pool->lock);
        struct tr_target *worker = slot->worker ? tr_target_ref(&slot->worker->target) : NULL;
        tr_lock_release(&slot->pool->lock);
        return worker;
}

void tr_pool_stop_workers(struct tr_pool *pool) {
        tr_lock_acquire(&pool->lock);
        bool now = pool->stopping && !pool->workers_stopped && pool->queue_count == 0;
        enum tr_stop_reason reason = pool->stop_reason;
        if (now)
                pool->workers_stopped = true;
        tr_lock_release(&pool->lock);
        for (uint32_t i = 0; now && i < pool->workers; i++) {
                struct tr_target *worker = slot_worker(&pool->slots[i]);
                if (worker)
                        worker->ops->stop(worker, reason, TR_NEVER);
                tr_target_unref(worker);
        }
}

static void pool_kill(struct tr_target *target) {
        struct tr_pool *pool = (struct tr_pool *)target;
        struct tr_list queue = TR_LIST_INIT(queue);
        tr_lock_acquire(&pool->lock);
        bool first = !pool->killed && !pool->over;
        if (first) {
                pool->killed = pool->stopping = pool->workers_stopped = true;
                tr_failure_unref(pool->failure);
                pool->failure = tr_failure_new(TR_CODE_KILLED, "the pool was killed");
        }
        tr_lock_release(&pool->lock);
        for (uint32_t i = 0; first && i < pool->workers; i++) {
                struct tr_target *worker = slot_worker(&pool->slots[i]);
                if (worker)
                        worker->ops->kill(worker);
                tr_target_unref(worker);
        }
        if (first)
                tr_pool_try_end(pool);
}

static void on_stop_timer(struct tr_timer *timer) {
        struct tr_pool *pool = tr_container_of(timer, struct tr_pool, stop_timer);
        pool_kill(&pool->target);
        tr_target_unref(&pool->target);
}

static void pool_stop(struct tr_target *target, enum tr_stop_reason reason, uint64_t within_ns) {
        struct tr_pool *pool = (struct tr_pool *)target;
        tr_lock_acquire(&pool->lock);
        bool over = pool->over;
        if (!pool->stopping) {
                pool->stopping = true;
                pool->stop_reason = reason;
        }
        tr_lock_release(&pool->lock);
        if (over)
                return;
        if (within_ns != TR_NEVER) {
                tr_target_ref(target);
                pool->stop_timer.fire = on_stop_timer;
                if (tr_system_set_timer(target->system, &pool->stop_timer, tr_clock_deadline_ns(within_ns)) != 0)
                        tr_target_unref(target); /* it was set already */
        }
        tr_pool_stop_workers(pool);
        tr_pool_try_end(pool);
}

/* What it says of itself */

static const char *pool_state_text_locked(const struct tr_pool *pool) TR_REQUIRES(pool->lock) {
        if (pool->stopping)
                return "stopping";
        if (!pool->has_started)
                return "starting";
        return pool->running > 0 ? "running" : "waiting";
}

/* Under the lock: its worker may leave. */
static uint64_t pool_depth_locked(const struct tr_pool *pool, const struct tr_slot *slot) TR_REQUIRES(pool->lock) {
        return slot->worker ? atomic_load_explicit(&slot->worker->mailbox.messages, memory_order_relaxed) : 0;
}

void tr_pool_add_figures(struct tr_pool *pool, struct tr_pool_figures *figures, uint64_t *depths) {
        figures->size += pool->workers;
        /* relaxed: figures for people */
        figures->messages += atomic_load_explicit(&pool->messages_total, memory_order_relaxed);
        figures->faults += atomic_load_explicit(&pool->faults_total, memory_order_relaxed);
        figures->restarts += atomic_load_explicit(&pool->restarts_total, memory_order_relaxed);
        tr_lock_acquire(&pool->lock);
        figures->running += pool->running;
        figures->queued += pool->queue_count;
        for (uint32_t i = 0; i < pool->workers; i++) {
                const struct tr_slot *slot = &pool->slots[i];
                figures->given_up += slot->backoff.slowed && slot->state != TR_SLOT_RUNNING;
                if (depths)
                        depths[i] += pool_depth_locked(pool, slot);
        }
        tr_lock_release(&pool->lock);
        for (uint32_t i = 0; i < pool->workers; i++) {
                tr_times_sum_up(&figures->wait, &pool->slots[i].wait);
                tr_times_sum_up(&figures->run, &pool->slots[i].run);
        }
}

/* What certainly fits, whichever worker gets it while all the others are full: who sends many keeps to that. */
struct pool_fits {
        uint32_t messages;
        uint64_t bytes;
};

static struct pool_fits pool_fits(const struct tr_pool *pool) {
        struct pool_fits fits = { pool->queue_max, pool->queue_bytes_max };
        if (pool->routing != TR_ROUTING_SHARED && pool->mailbox < fits.messages)
                fits.messages = pool->mailbox;
        if (pool->routing != TR_ROUTING_SHARED && pool->mailbox_bytes < fits.bytes)
                fits.bytes = pool->mailbox_bytes;
        return fits;
}

static uint32_t pool_info(struct tr_target *target, struct tr_writer *writer) {
        struct tr_pool *pool = (struct tr_pool *)target;
        const struct pool_fits fits = pool_fits(pool);
        struct tr_pool_figures figures = { 0 };
        tr_pool_add_figures(pool, &figures, NULL);
        tr_lock_acquire(&pool->lock);
        const char *state = pool_state_text_locked(pool);
        uint64_t queued_bytes = pool->queue_bytes;
        tr_lock_release(&pool->lock);
        const struct {
                const char *key;
                uint64_t value;
        } pairs[] = {
                { "size", figures.size },
                { "running", figures.running },
                { "given_up", figures.given_up },
                { "mailbox", figures.queued },
                { "mailbox_max", fits.messages },
                { "mailbox_bytes", queued_bytes },
                { "mailbox_bytes_max", fits.bytes },
                { "messages", figures.messages },
                { "faults", figures.faults },
                { "restarts", figures.restarts },
        };
        const uint32_t count = sizeof(pairs) / sizeof(pairs[0]);

        tr_write_text(writer, "state");
        tr_write_text(writer, state);
        tr_write_text(writer, "routing");
        tr_write_text(writer, tr_routing_text(pool->routing));
        for (uint32_t i = 0; i < count; i++) {
                tr_write_text(writer, pairs[i].key);
                tr_write_uint(writer, pairs[i].value);
        }
        return count + 2;
}

static bool pool_is_busy(struct tr_target *target) {
        struct tr_pool *pool = (struct tr_pool *)target;
        tr_lock_acquire(&pool->lock);
        bool busy = pool->queue_count > 0;
        tr_lock_release(&pool->lock);
        return busy;
}

const struct tr_target_ops tr_pool_target_ops = {
        .kind = TR_TARGET_POOL,
        .post = tr_pool_post,
        .stop = pool_stop,
        .kill = pool_kill,
        .info = pool_info,
        .is_busy = pool_is_busy,
        .free = pool_free,
};
