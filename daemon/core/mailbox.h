/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_MAILBOX_H
#define TR_CORE_MAILBOX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/clock.h"
#include "daemon/base/error.h"
#include "daemon/base/list.h"
#include "daemon/base/lock.h"
#include "daemon/core/message.h"

/*
 * A mailbox: many senders, one receiver.
 *
 * Messages wait in `queue` until a turn of the receiver takes them; from then
 * until they are settled and put away they are `in hand`. A message that was
 * taken but not begun still counts as queued: the two counters go up under the
 * lock and down when the receiver begins it, or finds that somebody settled it. Answers to what the receiver asked, and calls
 * for its attention (stop, kill), travel beside the limits.
 *
 * A closed mailbox takes nothing more; tr_mailbox_close() says whether what is
 * queued is still served (stop) or taken away whole (end).
 */

/* How many messages a turn takes at most, so that answers, timers and stops are never far away. */
#define TR_MAILBOX_BATCH 256

enum tr_post {
        TR_POST_OK = 0,
        TR_POST_FULL = 1,      /* mailbox-full */
        TR_POST_CLOSED = 2,    /* not-running */
        TR_POST_TOO_LARGE = 3, /* one message alone is above mailbox_bytes */
        TR_POST_NO_MEMORY = 4, /* a target that is no mailbox: what it needs for the message was not to be had */
};

/* The id of an answer to nothing: cargo that comes back. */
#define TR_ANSWER_CARGO UINT64_C(0)

/* An answer to something the mailbox's owner asked. One allocation; whoever takes it frees it. */
struct tr_answer {
        struct tr_list link;
        uint64_t id;                /* ask.id of the message */
        struct tr_failure *failure; /* strong; NULL: it was answered */
        enum tr_ran ran;
        struct tr_cargo *cargo; /* what the value carries; returned with the answer */
        bool foreign;           /* a client wrote the value: it is in the protocol's form, and not trusted */
        uint32_t bytes;
        uint8_t value[];            /* one value in the internal form, unless it is foreign */
};

struct tr_answer *tr_answer_new(uint64_t id, const void *value, size_t bytes);
struct tr_answer *tr_answer_new_failure(uint64_t id, struct tr_failure *failure, enum tr_ran ran);
void tr_answer_free(struct tr_answer *answer);

struct tr_mailbox {
        struct tr_lock lock;
        pthread_cond_t wake;
        struct tr_list queue TR_GUARDED_BY(lock);
        uint32_t queue_count TR_GUARDED_BY(lock);
        struct tr_list in_hand TR_GUARDED_BY(lock);
        struct tr_list answers TR_GUARDED_BY(lock);
        bool closed TR_GUARDED_BY(lock);
        bool answers_closed TR_GUARDED_BY(lock);
        bool parked TR_GUARDED_BY(lock);     /* the receiver waits on `wake` */

        /* Hints for a receiver that waits awake (see mailbox.c). */
        _Atomic bool has_messages;
        _Atomic bool has_answers;
        _Atomic bool attention; /* asked for from outside, seen by the receiver */
        _Atomic bool answer_lost;

        /* Queued, what was taken but not begun included. Up under the lock, down by the receiver in tr_mailbox_begin(). */
        _Atomic uint32_t messages;
        _Atomic uint64_t bytes;
        uint32_t messages_max;
        uint64_t bytes_max;

        bool last_lone;           /* the receiver's: what it took last was one message, and lone */
        uint64_t last_message_ns; /* the receiver's: when it last had one; it spins only a while after that */
};

void tr_mailbox_init(struct tr_mailbox *mailbox, uint32_t messages_max, uint64_t bytes_max);
/* It must be closed and empty. */
void tr_mailbox_deinit(struct tr_mailbox *mailbox);

/*
 * Any thread. Takes messages from the front of the list, in order, until one is refused; those and all behind it stay in
 * the list, the caller's to reject. One lock, and a wake only where the mailbox was empty and the receiver parked.
 */
TR_MUST_CHECK enum tr_post tr_mailbox_post(struct tr_mailbox *mailbox, struct tr_list *messages);
/* Any thread. Frees it where the mailbox takes no answers any more. NULL says that there was no memory for an answer: the
 * receiver, which would wait for it for ever, is told (answer_lost) and has to give up. */
void tr_mailbox_post_answer(struct tr_mailbox *mailbox, struct tr_answer *take_answer);
/* Any thread. Wakes the receiver, whatever the limits. */
void tr_mailbox_call_attention(struct tr_mailbox *mailbox);

/*
 * The receiver only. Puts away `finished` (unlinks and drops them), then takes up to `max` messages and all answers. Answers the first message, with the others behind it, as
 * `finished` is, in next_in_hand. They are borrowed: the mailbox's list of what is in hand holds them until they are put away.
 */
struct tr_message *tr_mailbox_take(struct tr_mailbox *mailbox, uint32_t max, struct tr_message *finished,
                                   struct tr_list *ret_answers);
/* The receiver only, between two of those: takes one message more, and nothing else. NULL where there is none, and where there is something
 * else to be taken. */
struct tr_message *tr_mailbox_take_next(struct tr_mailbox *mailbox);
/* The receiver only: a message that was queued elsewhere is in hand here, as if it had been taken. Takes it; in no list. */
void tr_mailbox_adopt(struct tr_mailbox *mailbox, struct tr_message *take_message);
/* The receiver only: a taken message begins. False where somebody settled it first. */
bool tr_mailbox_begin(struct tr_mailbox *mailbox, struct tr_message *message);

/* The receiver only. Waits until there is something (messages count unless `answers_only`) or the deadline has come. */
void tr_mailbox_wait(struct tr_mailbox *mailbox, bool answers_only, uint64_t deadline_ns);

/* Any thread. No message is taken from now on; what is queued stays. */
void tr_mailbox_close(struct tr_mailbox *mailbox);
/* The receiver, at its end: closed for messages and answers, everything handed to the caller: the lists' references too. */
void tr_mailbox_close_and_take(struct tr_mailbox *mailbox, struct tr_list *ret_queue, struct tr_list *ret_in_hand,
                               struct tr_list *ret_answers);
/* Any thread, for an actor that does not return: closed for messages, and what it has not taken is handed to the caller. */
void tr_mailbox_close_and_take_queue(struct tr_mailbox *mailbox, struct tr_list *ret_queue);
/* Any thread, for an actor that does not return: rejects all that is queued and in hand, leaving the lists to the receiver.
 * Answers the sends that were queued, which are dropped: chained by next_rejected, each with a reference for the caller. */
TR_MUST_CHECK struct tr_message *tr_mailbox_reject_all(struct tr_mailbox *mailbox, struct tr_failure *failure);
/* Any thread. Writes the name of the handler that began last and has not ended; false where none is. */
bool tr_mailbox_current_handler(struct tr_mailbox *mailbox, char *ret_name, size_t size);
bool tr_mailbox_is_closed(struct tr_mailbox *mailbox);
/* The receiver only. Whether nothing seems to be there for it: a hint, without the lock. */
static inline bool tr_mailbox_seems_empty(const struct tr_mailbox *mailbox) {
        return !atomic_load_explicit(&mailbox->has_messages, memory_order_relaxed) &&
               !atomic_load_explicit(&mailbox->has_answers, memory_order_relaxed) &&
               !atomic_load_explicit(&mailbox->attention, memory_order_relaxed);
}
/* Any thread. Whether there are answers for the receiver, or its attention is asked for. */
bool tr_mailbox_has_come(struct tr_mailbox *mailbox);

#endif
