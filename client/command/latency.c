/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command/latency.h"

#include <errno.h>
#include <stdlib.h>

#define CAPACITY_MIN 1024

int tr_latencies_add(struct tr_latencies *latencies, uint64_t ns) {
        if (latencies->count == latencies->capacity) {
                size_t capacity = latencies->capacity ? 2 * latencies->capacity : CAPACITY_MIN;
                uint64_t *array = reallocarray(latencies->ns, capacity, sizeof(*array));

                if (!array)
                        return -ENOMEM;
                latencies->ns = array;
                latencies->capacity = capacity;
        }
        latencies->ns[latencies->count++] = ns;
        return 0;
}

static int compare(const void *a, const void *b) {
        uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

        return (first > second) - (first < second);
}

void tr_latencies_sort(struct tr_latencies *latencies) {
        if (latencies->count)
                qsort(latencies->ns, latencies->count, sizeof(*latencies->ns), compare);
}

uint64_t tr_latencies_quantile(const struct tr_latencies *latencies, unsigned int thousandths) {
        size_t rank = (latencies->count * thousandths + 999) / 1000;

        if (!latencies->count)
                return 0;
        return latencies->ns[rank ? rank - 1 : 0];
}

void tr_latencies_deinit(struct tr_latencies *latencies) {
        free(latencies->ns);
        *latencies = (struct tr_latencies){ 0 };
}

/* Where bar number so much ends: at 1, 1.5, 2, 3, 5, 7 and 10 of each power of ten, beginning with 100 ns. */
static uint64_t end_of(size_t index) {
        static const uint64_t tenths[] = { 15, 20, 30, 50, 70, 100 };
        uint64_t ns = tenths[index % 6] * 10;

        for (size_t i = 0; i < index / 6; i++)
                ns *= 10;
        return ns;
}

size_t tr_latencies_bars(const struct tr_latencies *latencies, struct tr_latency_bar ret_bars[TR_LATENCY_BARS_MAX]) {
        size_t count = 0, index = 0, at = 0;
        uint64_t from = 0;

        for (; at < latencies->count && index < TR_LATENCY_BARS_MAX; index++) {
                struct tr_latency_bar bar = { from, end_of(index), 0 };

                /* the last one has all that is longer, too */
                while (at < latencies->count && (latencies->ns[at] < bar.to_ns || index + 1 == TR_LATENCY_BARS_MAX)) {
                        bar.count++;
                        at++;
                }
                from = bar.to_ns;
                if (count || bar.count)
                        ret_bars[count++] = bar;
        }
        return count;
}
