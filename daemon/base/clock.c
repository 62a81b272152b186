/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's clock: CLOCK_MONOTONIC unless a test has put its own source there. The source is set before other
 * threads exist, so it is a plain pointer: whoever starts a thread later hands it over with everything else.
 */
#include "daemon/base/clock.h"

#include <time.h>

static uint64_t kernel_monotonic_ns(void) {
        struct timespec now;

        /* cannot fail: the clock is always there on Linux and the pointer is ours */
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * TR_NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t (*clock_source)(void) = kernel_monotonic_ns;

uint64_t tr_clock_ns(void) {
        return clock_source();
}

static int64_t kernel_wall_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (int64_t)now.tv_sec * 1000 + (int64_t)(now.tv_nsec / (long)TR_NS_PER_MS);
}

static int64_t (*wall_source)(void) = kernel_wall_ms;

int64_t tr_clock_wall_ms(void) {
        return wall_source();
}

uint64_t tr_clock_deadline_ns(uint64_t after_ns) {
        uint64_t deadline_ns;

        if (__builtin_add_overflow(tr_clock_ns(), after_ns, &deadline_ns))
                return TR_NEVER;
        return deadline_ns;
}

void tr_clock_set_source(uint64_t (*monotonic_ns)(void)) {
        clock_source = monotonic_ns ? monotonic_ns : kernel_monotonic_ns;
}

void tr_clock_set_wall_source(int64_t (*wall_ms)(void)) {
        wall_source = wall_ms ? wall_ms : kernel_wall_ms;
}
