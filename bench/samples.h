/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_BENCH_SAMPLES_H
#define TR_BENCH_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

/* How long each of a known number of round trips took. Every one is kept: percentiles are exact. */
struct bench_samples {
        uint32_t *ns;
        size_t count;
        size_t max;
};

/* Ends the program where memory is short. */
void bench_samples_init(struct bench_samples *samples, size_t max);
void bench_samples_deinit(struct bench_samples *samples);
/* At most `max` of them. Above four seconds counts as four. */
void bench_samples_add(struct bench_samples *samples, uint64_t ns);
/* Prints {"p50_us": …, "p99_us": …} as one line. */
void bench_samples_print(struct bench_samples *samples);
/* The same, with {"per_second": …}. */
void bench_samples_print_with(struct bench_samples *samples, double per_second);

#endif
