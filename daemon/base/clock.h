/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_BASE_CLOCK_H
#define TR_BASE_CLOCK_H

#include <stdint.h>

/*
 * The one clock of the daemon. Any thread. Tests put a source of their own
 * behind it before other threads exist, and drive pauses and deadlines by hand.
 */

#define TR_NS_PER_US UINT64_C(1000)
#define TR_NS_PER_MS UINT64_C(1000000)
#define TR_NS_PER_S UINT64_C(1000000000)
/* A deadline that never comes. */
#define TR_NEVER UINT64_MAX

/* Nanoseconds on the monotonic clock. */
uint64_t tr_clock_ns(void);
/* Milliseconds since 1970. */
int64_t tr_clock_wall_ms(void);
/* A deadline `after_ns` from now; TR_NEVER where that is beyond the clock. */
uint64_t tr_clock_deadline_ns(uint64_t after_ns);
/* NULL goes back to the kernel's. */
void tr_clock_set_source(uint64_t (*monotonic_ns)(void));
/* The same of milliseconds since 1970. */
void tr_clock_set_wall_source(int64_t (*wall_ms)(void));

#endif
