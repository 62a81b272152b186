/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "bench/samples.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/socket.h"

void bench_samples_init(struct bench_samples *samples, size_t max) {
        *samples = (struct bench_samples){ .ns = malloc(max * sizeof(*samples->ns)), .max = max };
        if (!samples->ns)
                bench_die("no memory for %zu samples", max);
        /* touched now, so that no page fault is measured */
        memset(samples->ns, 0, max * sizeof(*samples->ns));
}

void bench_samples_deinit(struct bench_samples *samples) {
        free(samples->ns);
        *samples = (struct bench_samples){ 0 };
}

void bench_samples_add(struct bench_samples *samples, uint64_t ns) {
        assert(samples->count < samples->max);
        samples->ns[samples->count++] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

static int compare(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

/* The smallest sample that `percent` of all are not above. */
static double percentile_us(const struct bench_samples *samples, size_t percent) {
        size_t rank = (samples->count * percent + 99) / 100;

        return samples->ns[rank - 1] / 1000.0;
}

void bench_samples_print(struct bench_samples *samples) {
        qsort(samples->ns, samples->count, sizeof(*samples->ns), compare);
        printf("{\"p50_us\": %.2f, \"p99_us\": %.2f}\n", percentile_us(samples, 50), percentile_us(samples, 99));
}

void bench_samples_print_with(struct bench_samples *samples, double per_second) {
        qsort(samples->ns, samples->count, sizeof(*samples->ns), compare);
        printf("{\"p50_us\": %.2f, \"p99_us\": %.2f, \"per_second\": %.0f}\n", percentile_us(samples, 50),
               percentile_us(samples, 99), per_second);
}
