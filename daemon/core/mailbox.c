/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mailbox: a lock, lists, and one waiting receiver.
 *
 * Invariants:
 *  - has_messages and has_answers are hints for a receiver that waits awake. They are raised after the lock is released,
 *    since who sees one goes for the lock at once; so one may be late, or be up for nothing. What decides is in the lists.
 *  - A message is in `queue`, then in `in_hand`, then nowhere; the list it is in holds one reference.
 *  - parked is true only while the receiver sleeps in tr_mailbox_wait() and nobody has woken it yet, so that of
 *    many senders one pays for the wake.
 *  - Nothing that could answer an asker is called under the lock: two actors that die asking each other would
 *    otherwise wait for each other.
 */
#include "daemon/core/mailbox.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/cargo.h"
#include "daemon/core/stock.h"

/* A receiver that had a message within the last millisecond waits for the next one awake, this long. */
#define SPIN_NS (50 * TR_NS_PER_US)
#define SPIN_RECENT_NS TR_NS_PER_MS
/* Looks at the flags, a microsecond or two, before the CPU is offered to others and the clock is looked at. */
#define SPIN_LOOKS 32
/* Looks at the clock at most, should it stand still (as tests let it). */
#define SPIN_ROUNDS 4096

struct tr_answer *tr_answer_new(uint64_t id, const void *value, size_t bytes) {
        if (bytes > UINT32_MAX)
                return NULL;
        struct tr_answer *answer = tr_stock_alloc(sizeof(*answer) + bytes);
        if (!answer)
                return NULL;
        *answer = (struct tr_answer){ .id = id, .ran = TR_RAN_YES, .bytes = (uint32_t)bytes };
        tr_list_init(&answer->link);
        if (bytes)
                memcpy(answer->value, value, bytes);
        return answer;
}

struct tr_answer *tr_answer_new_failure(uint64_t id, struct tr_failure *failure, enum tr_ran ran) {
        struct tr_answer *answer = tr_answer_new(id, NULL, 0);
        if (!answer)
                return NULL;
        answer->failure = tr_failure_ref(failure);
        answer->ran = ran;
        return answer;
}

void tr_answer_free(struct tr_answer *answer) {
        if (!answer)
                return;
        tr_failure_unref(answer->failure);
        tr_cargo_return(answer->cargo);
        tr_stock_free(answer, sizeof(*answer) + answer->bytes);
}

void tr_mailbox_init(struct tr_mailbox *mailbox, uint32_t messages_max, uint64_t bytes_max) {
        *mailbox = (struct tr_mailbox){ .messages_max = messages_max, .bytes_max = bytes_max };
        tr_lock_init(&mailbox->lock);
        tr_list_init(&mailbox->queue);
        tr_list_init(&mailbox->in_hand);
        tr_list_init(&mailbox->answers);

        pthread_condattr_t attributes;
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&mailbox->wake, &attributes);
        pthread_condattr_destroy(&attributes);
}

void tr_mailbox_deinit(struct tr_mailbox *mailbox) {
        pthread_cond_destroy(&mailbox->wake);
        tr_lock_deinit(&mailbox->lock);
}

/* Whether the receiver has to be woken, which the caller does after it has let go of the lock. */
static bool mailbox_unpark_locked(struct tr_mailbox *mailbox) TR_REQUIRES(mailbox->lock) {
        bool parked = mailbox->parked;
        mailbox->parked = false;
        return parked;
}

/* The mailbox's two counters, as a sender knows them: read once, for as long as they leave room, since the receiver lowers them
 * without the lock and each look at them fetches their cache line from its CPU. */
struct fill {
        uint32_t messages;
        uint64_t bytes;
        uint32_t new_messages; /* the sender's own, not counted yet */
        uint64_t new_bytes;
};

static void fill_look(struct fill *fill, struct tr_mailbox *mailbox) {
        /* relaxed: only this lock's holders raise them: at worst we see more */
        fill->messages = atomic_load_explicit(&mailbox->messages, memory_order_relaxed);
        fill->bytes = atomic_load_explicit(&mailbox->bytes, memory_order_relaxed);
}

static bool fill_has_room(const struct fill *fill, const struct tr_mailbox *mailbox, size_t bytes) {
        return fill->messages + fill->new_messages < mailbox->messages_max &&
               fill->bytes + fill->new_bytes + bytes <= mailbox->bytes_max;
}

static enum tr_post mailbox_accept_locked(struct tr_mailbox *mailbox, struct tr_message *message, struct fill *fill)
        TR_REQUIRES(mailbox->lock) {
        size_t bytes = tr_message_bytes(message);
        if (bytes > mailbox->bytes_max)
                return TR_POST_TOO_LARGE;
        if (!fill_has_room(fill, mailbox, bytes)) {
                fill_look(fill, mailbox);
                if (!fill_has_room(fill, mailbox, bytes))
                        return TR_POST_FULL;
        }
        fill->new_messages++;
        fill->new_bytes += bytes;
        tr_list_unlink(&message->link);
        tr_list_append(&mailbox->queue, &message->link);
        mailbox->queue_count++;
        return TR_POST_OK;
}

enum tr_post tr_mailbox_post(struct tr_mailbox *mailbox, struct tr_list *messages) {
        enum tr_post post = TR_POST_OK;
        bool first = false, wake = false;

        tr_lock_acquire(&mailbox->lock);
        if (mailbox->closed) {
                post = TR_POST_CLOSED;
        } else {
                struct tr_message *message;
                struct fill fill = { 0 };
                bool was_empty = tr_list_is_empty(&mailbox->queue);
                fill_look(&fill, mailbox);
                while ((message = tr_list_first(messages, struct tr_message, link))) {
                        post = mailbox_accept_locked(mailbox, message, &fill);
                        if (post != TR_POST_OK)
                                break;
                }
                atomic_fetch_add_explicit(&mailbox->messages, fill.new_messages, memory_order_relaxed);
                atomic_fetch_add_explicit(&mailbox->bytes, fill.new_bytes, memory_order_relaxed);
                first = was_empty && !tr_list_is_empty(&mailbox->queue);
                wake = first && mailbox_unpark_locked(mailbox);
        }
        tr_lock_release(&mailbox->lock);

        if (first)
                atomic_store_explicit(&mailbox->has_messages, true, memory_order_relaxed); /* a hint */
        if (wake)
                pthread_cond_signal(&mailbox->wake);
        return post;
}

void tr_mailbox_post_answer(struct tr_mailbox *mailbox, struct tr_answer *take_answer) {
        if (!take_answer) {
                atomic_store_explicit(&mailbox->answer_lost, true, memory_order_release);
                tr_mailbox_call_attention(mailbox);
                return;
        }

        tr_lock_acquire(&mailbox->lock);
        if (mailbox->answers_closed) {
                tr_lock_release(&mailbox->lock);
                tr_answer_free(take_answer);
                return;
        }
        tr_list_append(&mailbox->answers, &take_answer->link);
        bool wake = mailbox_unpark_locked(mailbox);
        tr_lock_release(&mailbox->lock);
        atomic_store_explicit(&mailbox->has_answers, true, memory_order_relaxed); /* a hint */

        if (wake)
                pthread_cond_signal(&mailbox->wake);
}

void tr_mailbox_call_attention(struct tr_mailbox *mailbox) {
        tr_lock_acquire(&mailbox->lock);
        atomic_store_explicit(&mailbox->attention, true, memory_order_release);
        bool wake = mailbox_unpark_locked(mailbox);
        tr_lock_release(&mailbox->lock);

        if (wake)
                pthread_cond_signal(&mailbox->wake);
}

/* Moves messages from the queue to what is in hand, without a look at them where it can: what is in them is still in the cache of the
 * CPU that wrote it, and every sender waits. Answers the first one, and how many. */
static struct tr_message *mailbox_take_queue_locked(struct tr_mailbox *mailbox, uint32_t max, uint32_t *ret_count)
        TR_REQUIRES(mailbox->lock) {
        struct tr_message *first = tr_list_first(&mailbox->queue, struct tr_message, link);
        *ret_count = mailbox->queue_count < max ? mailbox->queue_count : max;
        if (mailbox->queue_count <= max) {
                tr_list_splice(&mailbox->in_hand, &mailbox->queue);
        } else {
                struct tr_list *last = &first->link;
                for (uint32_t i = 1; i < max; i++)
                        last = last->next;
                tr_list_splice_front(&mailbox->in_hand, &mailbox->queue, last);
        }
        mailbox->queue_count -= *ret_count;
        return first;
}

/* Without the lock: of those who have it nobody but the receiver changes the order of what is in hand. */
static void chain_in_hand(struct tr_message *first, uint32_t count) {
        struct tr_message *message = first;
        for (uint32_t i = 1; i < count; i++) {
                message->next_in_hand = tr_container_of(message->link.next, struct tr_message, link);
                message = message->next_in_hand;
        }
        if (message)
                message->next_in_hand = NULL;
}

struct tr_message *tr_mailbox_take(struct tr_mailbox *mailbox, uint32_t max, struct tr_message *finished,
                                   struct tr_list *ret_answers) {
        struct tr_message *taken = NULL;
        uint32_t count = 0;

        tr_lock_acquire(&mailbox->lock);
        for (struct tr_message *message = finished; message; message = message->next_in_hand)
                tr_list_unlink(&message->link);
        if (max > 0 && mailbox->queue_count > 0)
                taken = mailbox_take_queue_locked(mailbox, max, &count);
        tr_list_splice(ret_answers, &mailbox->answers);
        bool more = mailbox->queue_count > 0;
        if (atomic_load_explicit(&mailbox->has_messages, memory_order_relaxed) != more)
                atomic_store_explicit(&mailbox->has_messages, more, memory_order_relaxed);
        if (atomic_load_explicit(&mailbox->has_answers, memory_order_relaxed))
                atomic_store_explicit(&mailbox->has_answers, false, memory_order_relaxed);
        atomic_store_explicit(&mailbox->attention, false, memory_order_relaxed);
        tr_lock_release(&mailbox->lock);

        chain_in_hand(taken, count);
        tr_message_unref_chain(finished);
        if (taken || !tr_list_is_empty(ret_answers)) {
                mailbox->last_message_ns = tr_clock_ns();
                mailbox->last_lone = taken && taken->lone && !taken->next_in_hand && tr_list_is_empty(ret_answers);
        }
        return taken;
}

/* Relaxed: hints. */
static bool mailbox_seems_to_have_something(struct tr_mailbox *mailbox, bool answers_only) {
        return (!answers_only && atomic_load_explicit(&mailbox->has_messages, memory_order_relaxed)) ||
               atomic_load_explicit(&mailbox->has_answers, memory_order_relaxed) ||
               atomic_load_explicit(&mailbox->attention, memory_order_relaxed);
}

struct tr_message *tr_mailbox_take_next(struct tr_mailbox *mailbox) {
        /* what is missed has its turn */
        if (!atomic_load_explicit(&mailbox->has_messages, memory_order_relaxed) || mailbox_seems_to_have_something(mailbox, true))
                return NULL;
        tr_lock_acquire(&mailbox->lock);
        struct tr_message *message = tr_list_first(&mailbox->queue, struct tr_message, link);
        if (message) {
                tr_list_unlink(&message->link);
                tr_list_append(&mailbox->in_hand, &message->link);
                mailbox->queue_count--;
        }
        if (mailbox->queue_count == 0)
                atomic_store_explicit(&mailbox->has_messages, false, memory_order_relaxed);
        tr_lock_release(&mailbox->lock);
        if (message)
                message->next_in_hand = NULL;
        return message;
}

void tr_mailbox_adopt(struct tr_mailbox *mailbox, struct tr_message *take_message) {
        tr_lock_acquire(&mailbox->lock);
        tr_list_append(&mailbox->in_hand, &take_message->link);
        /* as where it is posted: tr_mailbox_begin() counts it off */
        atomic_fetch_add_explicit(&mailbox->messages, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&mailbox->bytes, tr_message_bytes(take_message), memory_order_relaxed);
        tr_lock_release(&mailbox->lock);
        take_message->next_in_hand = NULL;
        mailbox->last_message_ns = tr_clock_ns();
}

bool tr_mailbox_begin(struct tr_mailbox *mailbox, struct tr_message *message) {
        /* relaxed: counters that a sender may see a little late */
        atomic_fetch_sub_explicit(&mailbox->messages, 1, memory_order_relaxed);
        atomic_fetch_sub_explicit(&mailbox->bytes, tr_message_bytes(message), memory_order_relaxed);
        return tr_message_begin(message);
}

static bool mailbox_has_something_locked(struct tr_mailbox *mailbox, bool answers_only) TR_REQUIRES(mailbox->lock) {
        return (!answers_only && !tr_list_is_empty(&mailbox->queue)) || !tr_list_is_empty(&mailbox->answers) ||
               atomic_load_explicit(&mailbox->attention, memory_order_relaxed);
}

static bool have_other_cpus(void) {
        static _Atomic int cpus;
        int known = atomic_load_explicit(&cpus, memory_order_relaxed);
        if (!known) {
                cpu_set_t set;
                known = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
                atomic_store_explicit(&cpus, known, memory_order_relaxed);
        }
        return known > 1;
}

/*
 * Waits awake for a little while, where the next message is likely to be near: a wake costs more than it. The kernel likes to put
 * who was woken on the CPU of who woke him, so whoever is to send that message may be waiting for this very CPU: it is offered.
 *
 * But not after a lone message. Its sender is outside, and sleeps until it has the answer; who would take the offer is
 * the loop, and it would stay here, across from the sender: every message and every answer would interrupt the other
 * CPU, and an ask take 19 us, in every second run. Not let in, it stays on the sender's CPU: 8.5 us, in every run.
 */
static bool mailbox_spin(struct tr_mailbox *mailbox, bool answers_only, uint64_t deadline_ns) {
        uint64_t now = tr_clock_ns();
        if (now - mailbox->last_message_ns > SPIN_RECENT_NS || !have_other_cpus())
                return false;
        uint64_t end = now + SPIN_NS < deadline_ns ? now + SPIN_NS : deadline_ns;
        for (unsigned int round = 0; round < SPIN_ROUNDS && tr_clock_ns() < end; round++) {
                for (unsigned int look = 0; look < SPIN_LOOKS; look++) {
                        if (mailbox_seems_to_have_something(mailbox, answers_only))
                                return true;
                        tr_cpu_relax();
                }
                if (!mailbox->last_lone)
                        sched_yield();
        }
        return false;
}

void tr_mailbox_wait(struct tr_mailbox *mailbox, bool answers_only, uint64_t deadline_ns) {
        if (mailbox_seems_to_have_something(mailbox, answers_only) || mailbox_spin(mailbox, answers_only, deadline_ns))
                return;

        struct timespec until = { .tv_sec = (time_t)(deadline_ns / TR_NS_PER_S), .tv_nsec = (long)(deadline_ns % TR_NS_PER_S) };
        int r = 0;
        tr_stock_hand_in();
        tr_lock_acquire(&mailbox->lock);
        while (r == 0 && !mailbox_has_something_locked(mailbox, answers_only)) {
                mailbox->parked = true;
                if (deadline_ns == TR_NEVER)
                        r = pthread_cond_wait(&mailbox->wake, &mailbox->lock.mutex);
                else
                        r = pthread_cond_timedwait(&mailbox->wake, &mailbox->lock.mutex, &until);
        }
        mailbox->parked = false;
        tr_lock_release(&mailbox->lock);
}

void tr_mailbox_close(struct tr_mailbox *mailbox) {
        tr_lock_acquire(&mailbox->lock);
        mailbox->closed = true;
        tr_lock_release(&mailbox->lock);
}

bool tr_mailbox_is_closed(struct tr_mailbox *mailbox) {
        tr_lock_acquire(&mailbox->lock);
        bool closed = mailbox->closed;
        tr_lock_release(&mailbox->lock);
        return closed;
}

bool tr_mailbox_has_come(struct tr_mailbox *mailbox) {
        tr_lock_acquire(&mailbox->lock);
        bool has_come = mailbox_has_something_locked(mailbox, true);
        tr_lock_release(&mailbox->lock);
        return has_come;
}

void tr_mailbox_close_and_take(struct tr_mailbox *mailbox, struct tr_list *ret_queue, struct tr_list *ret_in_hand,
                               struct tr_list *ret_answers) {
        tr_lock_acquire(&mailbox->lock);
        mailbox->closed = true;
        mailbox->answers_closed = true;
        tr_list_splice(ret_queue, &mailbox->queue);
        mailbox->queue_count = 0;
        tr_list_splice(ret_in_hand, &mailbox->in_hand);
        tr_list_splice(ret_answers, &mailbox->answers);
        tr_lock_release(&mailbox->lock);
}

void tr_mailbox_close_and_take_queue(struct tr_mailbox *mailbox, struct tr_list *ret_queue) {
        tr_lock_acquire(&mailbox->lock);
        mailbox->closed = true;
        tr_list_splice(ret_queue, &mailbox->queue);
        mailbox->queue_count = 0;
        tr_lock_release(&mailbox->lock);
}

/* What was settled and is to be dealt with, each with a reference. */
struct rejected {
        struct tr_message *begun;
        struct tr_message *queued; /* asks */
        struct tr_message *dropped; /* sends that were queued */
};

static struct tr_message **rejected_chain(struct rejected *rejected, const struct tr_message *message, bool begun) {
        if (begun)
                return &rejected->begun;
        return message->asker ? &rejected->queued : &rejected->dropped;
}

/* Settles what is in a list, and chains it. */
static void mailbox_settle_locked(struct tr_list *list, struct rejected *rejected) {
        struct tr_message *message;
        tr_list_for_each(message, list, link) {
                bool begun;
                if (!tr_message_settle(message, &begun))
                        continue;
                struct tr_message **chain = rejected_chain(rejected, message, begun);
                message->next_rejected = *chain;
                *chain = tr_message_ref(message);
        }
}

static void return_cargo(struct tr_message *chain) {
        for (; chain; chain = chain->next_rejected)
                tr_cargo_return(tr_message_take_cargo(chain));
}

static void reject_chain(struct tr_message *chain, struct tr_failure *failure, enum tr_ran ran) {
        return_cargo(chain);
        while (chain) {
                struct tr_message *next = chain->next_rejected;
                if (chain->asker)
                        chain->asker->ops->reject(chain->asker, chain, failure, ran, false);
                tr_message_unref(chain);
                chain = next;
        }
}

struct tr_message *tr_mailbox_reject_all(struct tr_mailbox *mailbox, struct tr_failure *failure) {
        struct rejected rejected = { 0 };
        tr_lock_acquire(&mailbox->lock);
        mailbox->closed = true;
        mailbox_settle_locked(&mailbox->in_hand, &rejected);
        mailbox_settle_locked(&mailbox->queue, &rejected);
        tr_lock_release(&mailbox->lock);

        reject_chain(rejected.begun, failure, TR_RAN_MAYBE);
        reject_chain(rejected.queued, failure, TR_RAN_NO);
        return_cargo(rejected.dropped);
        return rejected.dropped;
}

bool tr_mailbox_current_handler(struct tr_mailbox *mailbox, char *ret_name, size_t size) {
        bool found = false;
        tr_lock_acquire(&mailbox->lock);
        for (struct tr_list *at = mailbox->in_hand.prev; at != &mailbox->in_hand && !found; at = at->prev) {
                struct tr_message *message = tr_container_of(at, struct tr_message, link);
                if (tr_message_state(message) != TR_MESSAGE_BEGUN || message->handler_len >= size)
                        continue;
                memcpy(ret_name, message->data, message->handler_len + 1);
                found = true;
        }
        tr_lock_release(&mailbox->lock);
        return found;
}
