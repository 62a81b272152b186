/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CLIENT_PENDING_H
#define TR_CLIENT_PENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "client/troupe.h"

/*
 * Requests that were sent and are not answered: a table from message id to request, and all of them in the order of
 * sending.
 */

/* Who waits for a request. */
enum tr_waiter {
        TR_WAITER_CALLBACK, /* the program's callback, from troupe_process() */
        TR_WAITER_CALL,     /* a call that has not returned yet */
};

/* How a request ends. */
enum tr_outcome {
        TR_OUTCOME_ANSWERED,
        TR_OUTCOME_REFUSED,
        TR_OUTCOME_LOST, /* the connection is over */
};

/* What the library itself does with an answer, as soon as it is read and before anybody else sees it. `value` is the
 * result or the daemon's error; NULL where it is lost. */
typedef void tr_pending_hook(struct troupe *troupe, struct troupe_pending *pending, enum tr_outcome outcome,
                             const struct troupe_value *value);

struct troupe_pending {
        struct troupe *troupe;
        struct troupe_pending *prev; /* in one queue at a time */
        struct troupe_pending *next;
        uint32_t id;
        enum tr_waiter waiter;
        troupe_callback *callback; /* may be NULL */
        void *userdata;
        tr_pending_hook *hook; /* may be NULL */
        void *subject;         /* the hook's */
        uint64_t sent_at;      /* when the output has written so much (tr_output_position()), it is sent */

        /* Set when the answer had to be kept, because nobody could take it at once. */
        bool answered;
        bool lost;                  /* nobody has answered, and nobody will: */
        bool may_have_run;          /* it was sent */
        uint64_t order;             /* tr_connection_order() of then */
        bool failed;                /* `answer` is the error as the daemon said it */
        int result;                 /* 0, or why there is neither */
        struct troupe_value answer; /* the request's own copy */
};

struct tr_pending_queue {
        struct troupe_pending *first;
        struct troupe_pending *last;
};

void tr_pending_queue_append(struct tr_pending_queue *queue, struct troupe_pending *pending);
void tr_pending_queue_remove(struct tr_pending_queue *queue, struct troupe_pending *pending);
/* The oldest, which is in no queue after; NULL where there is none. */
struct troupe_pending *tr_pending_queue_pop(struct tr_pending_queue *queue);

/* Frees a request that is in no queue, with the answer that it kept. NULL is fine. */
void tr_pending_free(struct troupe_pending *pending);

/* Zeroed is empty. */
struct tr_pending_table {
        struct troupe_pending **slots; /* a request is at its id modulo the capacity */
        uint32_t capacity;             /* 0 or a power of two */
        uint32_t count;
        uint32_t next_id;
        struct tr_pending_queue order;
};

/* Gives the request an id that no other has, and takes it in. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int tr_pending_table_add(struct tr_pending_table *table,
                                                             struct troupe_pending *pending);
/* Takes the request of that id out of the table; NULL where there is none. */
struct troupe_pending *tr_pending_table_take(struct tr_pending_table *table, uint32_t id);
/* Takes the oldest out; NULL where there is none. */
struct troupe_pending *tr_pending_table_pop(struct tr_pending_table *table);
/* Frees the table's own memory. It must be empty. */
void tr_pending_table_deinit(struct tr_pending_table *table);

#endif
