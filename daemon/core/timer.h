/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_TIMER_H
#define TR_CORE_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"

/*
 * Timers: a binary heap of entries ordered by deadline, ties in the order they were added. It knows no clock, no thread
 * and no lock; who owns it has those. An entry is part of its user's structure and in at most one heap.
 */
struct tr_timer {
        uint64_t deadline_ns;
        uint64_t order;
        uint32_t at; /* place in the heap, + 1; 0: in none */
        bool reserved; /* there is room for it */
        void (*fire)(struct tr_timer *timer);
};

struct tr_timers {
        struct tr_timer **heap;
        uint32_t count;
        uint32_t room;
        uint32_t reserved; /* entries that there has to be room for, in the heap or not */
        uint64_t order;
};

void tr_timers_deinit(struct tr_timers *timers);
/* From here on the entry can be added whatever memory there is. 0 or -ENOMEM. */
TR_MUST_CHECK int tr_timers_reserve(struct tr_timers *timers, struct tr_timer *timer);
/* The end of that; nothing where it has not been reserved. The entry must be in no heap. */
void tr_timers_unreserve(struct tr_timers *timers, struct tr_timer *timer);
/* 0 or -ENOMEM. The entry must be in no heap. */
TR_MUST_CHECK int tr_timers_add(struct tr_timers *timers, struct tr_timer *timer, uint64_t deadline_ns);
/* Nothing where it is in none. */
void tr_timers_remove(struct tr_timers *timers, struct tr_timer *timer);
/* The earliest deadline, TR_NEVER where there is none. */
uint64_t tr_timers_next_ns(const struct tr_timers *timers);
/* Removes and answers the earliest that is due; NULL where none is. */
struct tr_timer *tr_timers_take_due(struct tr_timers *timers, uint64_t now_ns);

static inline bool tr_timer_is_set(const struct tr_timer *timer) {
        return timer->at != 0;
}

#endif
