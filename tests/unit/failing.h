/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_TESTS_UNIT_FAILING_H
#define TR_TESTS_UNIT_FAILING_H

#include <stdbool.h>

/*
 * Allocations that fail when a test says so. Only calls of malloc, calloc, realloc
 * and reallocarray from objects that are linked into the program are seen (the makefile's
 * failing_ldflags), not those that a shared library makes for itself. Threads
 * share one count.
 *
 *      long n = 0;
 *      do {
 *              failing_arm(++n);
 *              r = what_is_tested();
 *              failing_arm(0);
 *              ck_assert_int_eq(r, failing_hit() ? -ENOMEM : 0);
 *      } while (failing_hit());
 */

/* The after-th allocation from now on fails, and only that one; 0: none does. */
void failing_arm(long after);

/* Whether an allocation has failed since a failing_arm() of other than 0. */
bool failing_hit(void);

#endif
