/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/times.h"

#include "daemon/base/clock.h"

const uint64_t tr_times_bounds_ns[TR_TIMES_BOUNDS] = {
        10 * TR_NS_PER_US,  25 * TR_NS_PER_US,  50 * TR_NS_PER_US,  100 * TR_NS_PER_US, 250 * TR_NS_PER_US,
        500 * TR_NS_PER_US, TR_NS_PER_MS,       2500 * TR_NS_PER_US, 5 * TR_NS_PER_MS,  10 * TR_NS_PER_MS,
        25 * TR_NS_PER_MS,  50 * TR_NS_PER_MS,  100 * TR_NS_PER_MS, 250 * TR_NS_PER_MS, 500 * TR_NS_PER_MS,
        TR_NS_PER_S,        2500 * TR_NS_PER_MS, 5 * TR_NS_PER_S,   10 * TR_NS_PER_S,
};

/* relaxed, and no atomic addition: nobody else writes */
static void add(_Atomic uint64_t *to, uint64_t amount) {
        atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + amount, memory_order_relaxed);
}

void tr_times_add(struct tr_times *times, uint64_t ns) {
        /* From below: what takes long does not notice the look, and what is frequent is short. */
        unsigned int at = 0;
        while (at < TR_TIMES_BOUNDS && ns > tr_times_bounds_ns[at])
                at++;
        add(&times->counts[at], 1);
        add(&times->sum_ns, ns);
}

void tr_times_sum_up(struct tr_times_sum *sum, const struct tr_times *times) {
        sum->sum_ns += atomic_load_explicit(&times->sum_ns, memory_order_relaxed);
        for (unsigned int i = 0; i <= TR_TIMES_BOUNDS; i++)
                sum->counts[i] += atomic_load_explicit(&times->counts[i], memory_order_relaxed);
}
