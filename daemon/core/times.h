/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_TIMES_H
#define TR_CORE_TIMES_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * How long something took, each time it happened: how often it took at most so long, and how long all of it together. One
 * thread at a time adds, without paying for others that may look; any thread sums up, and sees what was added last a little late.
 */

#define TR_TIMES_BOUNDS 19

/* From the shortest on. What takes longer than the last one is counted behind it. */
extern const uint64_t tr_times_bounds_ns[TR_TIMES_BOUNDS];

struct tr_times {
        _Atomic uint64_t sum_ns;
        _Atomic uint64_t counts[TR_TIMES_BOUNDS + 1]; /* those that are above the bound before, and not above this one */
};

struct tr_times_sum {
        uint64_t sum_ns;
        uint64_t counts[TR_TIMES_BOUNDS + 1];
};

void tr_times_add(struct tr_times *times, uint64_t ns);
void tr_times_sum_up(struct tr_times_sum *sum, const struct tr_times *times);

#endif
