/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routing: which worker gets a message. It happens in the sender's thread, and no thread is in between.
 *
 * A worker that starts, stops or has ended is no candidate. One whose mailbox is full is passed over, in the order of the
 * slots from where the routing begins; so is one that ends between the choice and the post.
 *
 * The pool's queue is for those who are free: a worker that is about to wait enters the list of the free, and whoever puts
 * something into the queue takes one out and calls it. It looks at the queue under the lock under which it enters, so none is missed.
 */
#include "daemon/base/clock.h"
#include "daemon/base/random.h"
#include "daemon/core/actor.h"
#include "daemon/core/pool.h"

static bool slot_is_candidate(const struct tr_slot *slot) {
        return slot->state == TR_SLOT_RUNNING && !atomic_load_explicit(&slot->worker->stop_asked, memory_order_relaxed) &&
               !tr_actor_is_killed(slot->worker);
}

/* Waiting, on the way there, and running. relaxed: a guess, which is old when it is used. */
static uint32_t slot_load(const struct tr_slot *slot) {
        return atomic_load_explicit(&slot->worker->mailbox.messages, memory_order_relaxed) +
               atomic_load_explicit(&slot->dealt, memory_order_relaxed) +
               atomic_load_explicit(&slot->in_progress, memory_order_relaxed);
}

/* Where the least waits; of several the one that comes first from `from` on. */
static uint32_t pool_find_smallest_locked(const struct tr_pool *pool, uint32_t from) TR_REQUIRES(pool->lock) {
        uint32_t best = from, best_load = UINT32_MAX;
        for (uint32_t i = 0; i < pool->workers; i++) {
                uint32_t at = (from + i) % pool->workers;
                if (!slot_is_candidate(&pool->slots[at]))
                        continue;
                uint32_t load = slot_load(&pool->slots[at]);
                if (load < best_load) {
                        best = at;
                        best_load = load;
                }
        }
        return best;
}

/* Any number, evenly enough: xorshift32 (Marsaglia, 2003), whose state is the pool's. */
static uint32_t pool_random_locked(struct tr_pool *pool) TR_REQUIRES(pool->lock) {
        uint32_t x = pool->next;
        if (!x && tr_random_bytes(&x, sizeof(x)) < 0)
                x = 1;
        x |= !x;
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        return pool->next = x;
}

/* Where the look for a worker begins. */
static uint32_t pool_begin_locked(struct tr_pool *pool) TR_REQUIRES(pool->lock) {
        if (pool->routing == TR_ROUTING_RANDOM)
                return pool_random_locked(pool) % pool->workers;
        uint32_t at = pool->next++ % pool->workers;
        return pool->routing == TR_ROUTING_SMALLEST_MAILBOX ? pool_find_smallest_locked(pool, at) : at;
}

/* The first candidate of those that are `*passed` slots behind `begin`, or further; NULL: none is left. */
static struct tr_slot *pool_next_candidate_locked(struct tr_pool *pool, uint32_t begin, uint32_t *passed)
        TR_REQUIRES(pool->lock) {
        while (*passed < pool->workers) {
                uint32_t at = (begin + (*passed)++) % pool->workers;
                struct tr_slot *slot = &pool->slots[at];
                if (!slot_is_candidate(slot))
                        continue;
                if (pool->routing == TR_ROUTING_ROUND_ROBIN)
                        pool->next = at + 1;
                return slot;
        }
        return NULL;
}

static enum tr_post pool_enqueue_locked(struct tr_pool *pool, struct tr_message *message) TR_REQUIRES(pool->lock) {
        size_t bytes = tr_message_bytes(message);
        if (pool->queue_count >= pool->queue_max || pool->queue_bytes + bytes > pool->queue_bytes_max)
                return TR_POST_FULL;
        tr_list_unlink(&message->link);
        tr_list_append(&pool->queue, &message->link);
        pool->queue_count++;
        pool->queue_bytes += bytes;
        return TR_POST_OK;
}

/* Takes one who waits out of the list of the free; a reference, or NULL. */
static struct tr_target *pool_take_free_locked(struct tr_pool *pool) TR_REQUIRES(pool->lock) {
        struct tr_slot *slot = tr_list_first(&pool->free, struct tr_slot, free_link);
        if (!slot)
                return NULL;
        tr_list_unlink(&slot->free_link);
        atomic_store_explicit(&slot->free, false, memory_order_relaxed);
        return tr_target_ref(&slot->worker->target);
}

static void call(struct tr_target *worker) {
        if (worker)
                tr_mailbox_call_attention(&((struct tr_actor *)worker)->mailbox);
        tr_target_unref(worker);
}

/* One message at a time: what is for a worker whose mailbox is full, say, goes to any other. */

/* Posts to a worker; TR_POST_CLOSED where none runs. */
static enum tr_post pool_post_to_worker(struct tr_pool *pool, struct tr_message *message) {
        enum tr_post post = TR_POST_CLOSED;
        uint32_t begin = 0, passed = 0;
        for (;;) {
                tr_lock_acquire(&pool->lock);
                if (passed == 0)
                        begin = pool_begin_locked(pool);
                struct tr_slot *slot = pool->stopping ? NULL : pool_next_candidate_locked(pool, begin, &passed);
                struct tr_target *worker = slot ? tr_target_ref(&slot->worker->target) : NULL;
                tr_lock_release(&pool->lock);
                if (!worker)
                        return post;
                enum tr_post tried = tr_target_post(worker, message);
                tr_target_unref(worker);
                if (tried == TR_POST_OK || tried == TR_POST_TOO_LARGE)
                        return tried;
                if (tried == TR_POST_FULL)
                        post = TR_POST_FULL;
        }
}

static enum tr_post pool_post_one(struct tr_pool *pool, struct tr_message *message) {
        enum tr_post post = pool_post_to_worker(pool, message);
        if (post != TR_POST_CLOSED)
                return post;
        struct tr_target *free = NULL;
        tr_lock_acquire(&pool->lock);
        post = pool->stopping ? TR_POST_CLOSED : pool_enqueue_locked(pool, message);
        if (post == TR_POST_OK)
                free = pool_take_free_locked(pool);
        tr_lock_release(&pool->lock);
        call(free);
        return post;
}

/*
 * Many at once, as they come from one piece of a connection's: they are dealt out under one lock, and each worker is then given its
 * run of them under one lock of its mailbox, with at most one wake.
 */

#define DEALT_MAX 64
/* Looks at the load of a worker, while the lock is held. */
#define LOOKS_MAX 4096
#define RUNS_MAX 16

struct run {
        struct tr_slot *slot;
        struct tr_target *worker;
        struct tr_list messages;
        uint32_t count;
};

struct deal {
        struct run runs[RUNS_MAX];
        uint32_t runs_count;
        uint32_t count; /* messages in all, those too that went to the pool's queue */
};

static struct run *deal_run(struct deal *deal, struct tr_slot *slot) {
        for (uint32_t i = 0; i < deal->runs_count; i++)
                if (deal->runs[i].slot == slot)
                        return &deal->runs[i];
        struct run *run = &deal->runs[deal->runs_count++];
        run->slot = slot;
        run->worker = tr_target_ref(&slot->worker->target);
        run->count = 0;
        tr_list_init(&run->messages);
        return run;
}

static bool deal_is_full(const struct deal *deal, const struct tr_pool *pool) {
        uint32_t max = pool->routing == TR_ROUTING_SMALLEST_MAILBOX ? 1 + LOOKS_MAX / pool->workers : DEALT_MAX;
        return deal->count >= max || (deal->runs_count == RUNS_MAX && pool->workers > RUNS_MAX);
}

/* Gives one to a worker, or to the pool's queue. Where that is not to be, it is still in its list. */
static enum tr_post pool_deal_one_locked(struct tr_pool *pool, struct deal *deal, struct tr_message *message)
        TR_REQUIRES(pool->lock) {
        uint32_t passed = 0;
        struct tr_slot *slot = NULL;
        if (pool->stopping)
                return TR_POST_CLOSED;
        if (tr_message_bytes(message) > pool->mailbox_bytes)
                return TR_POST_TOO_LARGE;
        if (pool->routing != TR_ROUTING_SHARED && pool->running > 0)
                slot = pool_next_candidate_locked(pool, pool_begin_locked(pool), &passed);
        if (!slot)
                return pool_enqueue_locked(pool, message);
        struct run *run = deal_run(deal, slot);
        tr_list_unlink(&message->link);
        tr_list_append(&run->messages, &message->link);
        run->count++;
        if (pool->routing == TR_ROUTING_SMALLEST_MAILBOX)
                atomic_fetch_add_explicit(&slot->dealt, 1, memory_order_relaxed);
        return TR_POST_OK;
}

/* Hands over what was dealt out; what a worker did not take, because its mailbox is full or it has just ended, is put into `left`. */
static void deal_post(struct deal *deal, struct tr_pool *pool, struct tr_list *left) {
        for (uint32_t i = 0; i < deal->runs_count; i++) {
                struct run *run = &deal->runs[i];
                if (run->worker->ops->post(run->worker, &run->messages) != TR_POST_OK)
                        tr_list_splice(left, &run->messages);
                if (pool->routing == TR_ROUTING_SMALLEST_MAILBOX)
                        atomic_fetch_sub_explicit(&run->slot->dealt, run->count, memory_order_relaxed);
                tr_target_unref(run->worker);
        }
}

/* Some from the front of the list. Not TR_POST_OK: the first that is left in it was refused. */
static enum tr_post pool_post_some(struct tr_pool *pool, struct tr_list *messages, uint64_t now_ns) {
        struct deal deal;
        struct tr_list left = TR_LIST_INIT(left);
        struct tr_message *message;
        enum tr_post post = TR_POST_OK, again = TR_POST_OK;
        deal.runs_count = deal.count = 0;
        tr_lock_acquire(&pool->lock);
        while (post == TR_POST_OK && !deal_is_full(&deal, pool) &&
               (message = tr_list_first(messages, struct tr_message, link))) {
                message->since_ns = now_ns;
                post = pool_deal_one_locked(pool, &deal, message);
                deal.count += post == TR_POST_OK;
        }
        bool call_free = pool->queue_count > 0 && !tr_list_is_empty(&pool->free);
        tr_lock_release(&pool->lock);
        deal_post(&deal, pool, &left);
        if (call_free)
                tr_pool_call_free(pool);
        while (again == TR_POST_OK && (message = tr_list_first(&left, struct tr_message, link))) {
                tr_list_unlink(&message->link);
                again = pool_post_one(pool, message);
                if (again != TR_POST_OK)
                        tr_list_prepend(&left, &message->link);
        }
        tr_list_for_each(message, &left, link)
                deal.count--;
        /* relaxed: a figure for people */
        atomic_fetch_add_explicit(&pool->messages_total, deal.count, memory_order_relaxed);
        tr_list_splice(&left, messages);
        tr_list_splice(messages, &left);
        return again != TR_POST_OK ? again : post;
}

enum tr_post tr_pool_post(struct tr_target *target, struct tr_list *messages) {
        struct tr_pool *pool = (struct tr_pool *)target;
        uint64_t now_ns = tr_clock_ns();
        enum tr_post post = TR_POST_OK;
        while (post == TR_POST_OK && !tr_list_is_empty(messages))
                post = pool_post_some(pool, messages, now_ns);
        return post;
}

/* The pool's queue, as workers see it */

void tr_pool_call_free(struct tr_pool *pool) {
        uint32_t count = atomic_load_explicit(&pool->queue_count, memory_order_relaxed); /* at worst one is called for nothing */
        while (count-- > 0) {
                tr_lock_acquire(&pool->lock);
                struct tr_target *worker = pool_take_free_locked(pool);
                tr_lock_release(&pool->lock);
                if (!worker)
                        return;
                call(worker);
        }
}

/* Whether a worker may take from the queue at all: it runs, and nobody stops it alone. */
static bool pool_lets_pull_locked(const struct tr_pool *pool, const struct tr_slot *slot, bool idle)
        TR_REQUIRES(pool->lock) {
        if (slot->state != TR_SLOT_RUNNING || (pool->routing == TR_ROUTING_SHARED && !idle))
                return false;
        return pool->stopping || slot_is_candidate(slot);
}

struct tr_message *tr_slot_pull(struct tr_slot *slot, bool idle) {
        struct tr_pool *pool = slot->pool;
        struct tr_message *message = NULL;
        if (!tr_slot_sees_work(slot))
                return NULL;
        tr_lock_acquire(&pool->lock);
        if (pool_lets_pull_locked(pool, slot, idle))
                message = tr_list_first(&pool->queue, struct tr_message, link);
        if (message) {
                tr_list_unlink(&message->link);
                pool->queue_count--;
                pool->queue_bytes -= tr_message_bytes(message);
        }
        bool drained = message && pool->stopping && pool->queue_count == 0;
        tr_lock_release(&pool->lock);
        if (drained)
                tr_pool_stop_workers(pool);
        return message;
}

bool tr_slot_rest(struct tr_slot *slot, bool idle) {
        struct tr_pool *pool = slot->pool;
        tr_lock_acquire(&pool->lock);
        bool may = pool_lets_pull_locked(pool, slot, idle);
        bool work = may && pool->queue_count > 0;
        if (may && !work && !atomic_load_explicit(&slot->free, memory_order_relaxed)) {
                /* The last one that became free is the first to be called: what it needs is still in its CPU's cache. */
                tr_list_prepend(&pool->free, &slot->free_link);
                atomic_store_explicit(&slot->free, true, memory_order_relaxed);
        }
        tr_lock_release(&pool->lock);
        return work;
}

void tr_slot_wake(struct tr_slot *slot) {
        /* relaxed: this thread set it, and whoever cleared it since has called this thread, which takes from the queue now */
        if (!atomic_load_explicit(&slot->free, memory_order_relaxed))
                return;
        tr_lock_acquire(&slot->pool->lock);
        tr_list_unlink(&slot->free_link);
        atomic_store_explicit(&slot->free, false, memory_order_relaxed);
        tr_lock_release(&slot->pool->lock);
}

bool tr_slot_has_work(struct tr_slot *slot) {
        tr_lock_acquire(&slot->pool->lock);
        bool has = slot->pool->stopping && slot->pool->queue_count > 0;
        tr_lock_release(&slot->pool->lock);
        return has;
}
