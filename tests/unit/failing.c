/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linker directs every malloc, calloc, realloc and reallocarray of the program here
 * (-Wl,--wrap), so that the code under test is the code that ships.
 */
#include "tests/unit/failing.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_reallocarray(void *block, size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_reallocarray(void *block, size_t count, size_t size);

/* Allocations until one fails, that one counted; 0 and less: none will. */
static atomic_long countdown;
static atomic_bool hit;

void failing_arm(long after) {
        if (after != 0)
                atomic_store(&hit, false);
        atomic_store(&countdown, after);
}

bool failing_hit(void) {
        return atomic_load(&hit);
}

static bool fails(void) {
        if (atomic_load(&countdown) <= 0 || atomic_fetch_sub(&countdown, 1) != 1)
                return false;
        atomic_store(&hit, true);
        errno = ENOMEM;
        return true;
}

void *__wrap_malloc(size_t size) {
        return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
        return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size) {
        return fails() ? NULL : __real_realloc(block, size);
}

void *__wrap_reallocarray(void *block, size_t count, size_t size) {
        return fails() ? NULL : __real_reallocarray(block, count, size);
}
