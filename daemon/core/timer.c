/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A binary min-heap of pointers. heap[0] is the earliest; the children of place
 * i are 2i+1 and 2i+2, and each entry knows its own place, so that it can leave
 * from anywhere in O(log n).
 */
#include "daemon/core/timer.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/base/clock.h"

static bool timer_before(const struct tr_timer *a, const struct tr_timer *b) {
        return a->deadline_ns != b->deadline_ns ? a->deadline_ns < b->deadline_ns : a->order < b->order;
}

static void timers_put(struct tr_timers *timers, uint32_t place, struct tr_timer *timer) {
        timers->heap[place] = timer;
        timer->at = place + 1;
}

static void timers_sift_up(struct tr_timers *timers, uint32_t place, struct tr_timer *timer) {
        while (place > 0) {
                uint32_t parent = (place - 1) / 2;
                if (!timer_before(timer, timers->heap[parent]))
                        break;
                timers_put(timers, place, timers->heap[parent]);
                place = parent;
        }
        timers_put(timers, place, timer);
}

static void timers_sift_down(struct tr_timers *timers, uint32_t place, struct tr_timer *timer) {
        for (;;) {
                uint32_t child = 2 * place + 1;
                if (child >= timers->count)
                        break;
                if (child + 1 < timers->count && timer_before(timers->heap[child + 1], timers->heap[child]))
                        child++;
                if (!timer_before(timers->heap[child], timer))
                        break;
                timers_put(timers, place, timers->heap[child]);
                place = child;
        }
        timers_put(timers, place, timer);
}

void tr_timers_deinit(struct tr_timers *timers) {
        free(timers->heap);
        *timers = (struct tr_timers){ 0 };
}

static int timers_make_room(struct tr_timers *timers, uint32_t wanted) {
        uint32_t room = timers->room ? timers->room : 16;
        if (wanted <= timers->room)
                return 0;
        while (room < wanted)
                room *= 2;
        struct tr_timer **heap = reallocarray(timers->heap, room, sizeof(*heap));
        if (!heap)
                return -ENOMEM;
        timers->heap = heap;
        timers->room = room;
        return 0;
}

int tr_timers_reserve(struct tr_timers *timers, struct tr_timer *timer) {
        int r = timers_make_room(timers, timers->count + timers->reserved + 1);
        if (r < 0)
                return r;
        timers->reserved++;
        timer->reserved = true;
        return 0;
}

void tr_timers_unreserve(struct tr_timers *timers, struct tr_timer *timer) {
        timers->reserved -= timer->reserved;
        timer->reserved = false;
}

int tr_timers_add(struct tr_timers *timers, struct tr_timer *timer, uint64_t deadline_ns) {
        /* The others leave room for all that are reserved, so that those find some. */
        int r = timers_make_room(timers, timers->count + 1 + (timer->reserved ? 0 : timers->reserved));
        if (r < 0)
                return r;
        timer->deadline_ns = deadline_ns;
        timer->order = timers->order++;
        timers_sift_up(timers, timers->count++, timer);
        return 0;
}

void tr_timers_remove(struct tr_timers *timers, struct tr_timer *timer) {
        if (!timer->at)
                return;
        uint32_t place = timer->at - 1;
        struct tr_timer *last = timers->heap[--timers->count];
        timer->at = 0;
        if (last == timer)
                return;
        if (place > 0 && timer_before(last, timers->heap[(place - 1) / 2]))
                timers_sift_up(timers, place, last);
        else
                timers_sift_down(timers, place, last);
}

uint64_t tr_timers_next_ns(const struct tr_timers *timers) {
        return timers->count ? timers->heap[0]->deadline_ns : TR_NEVER;
}

struct tr_timer *tr_timers_take_due(struct tr_timers *timers, uint64_t now_ns) {
        if (!timers->count || timers->heap[0]->deadline_ns > now_ns)
                return NULL;
        struct tr_timer *timer = timers->heap[0];
        tr_timers_remove(timers, timer);
        return timer;
}
