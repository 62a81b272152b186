/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_LATENCY_H
#define TR_COMMAND_LATENCY_H

#include <stddef.h>
#include <stdint.h>

/*
 * How long each of many requests took, in nanoseconds: every one is kept, so that what is said of them is exact. Zeroed
 * is empty.
 */
struct tr_latencies {
        uint64_t *ns;
        size_t count;
        size_t capacity;
};

/* 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int tr_latencies_add(struct tr_latencies *latencies, uint64_t ns);
/* Once all are there, and before they are looked at. */
void tr_latencies_sort(struct tr_latencies *latencies);
/* The smallest that so many thousandths of all do not exceed: 500 is the median, 1000 the longest. 0 where there is
 * none. */
uint64_t tr_latencies_quantile(const struct tr_latencies *latencies, unsigned int thousandths);
void tr_latencies_deinit(struct tr_latencies *latencies);

/* How many were from `from_ns` on and below `to_ns`. */
struct tr_latency_bar {
        uint64_t from_ns;
        uint64_t to_ns;
        size_t count;
};

/* Six bars for each power of ten, from the shortest to the longest that there was. Answers how many. */
#define TR_LATENCY_BARS_MAX 72
size_t tr_latencies_bars(const struct tr_latencies *latencies, struct tr_latency_bar ret_bars[TR_LATENCY_BARS_MAX]);

#endif
