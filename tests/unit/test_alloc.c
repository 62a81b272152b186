/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/script/alloc.h"

#include "tests/unit/suite.h"

#define CEILING 10000
#define LARGE (1 << 20)

static _Atomic uint64_t shared, total;
static struct tr_alloc alloc;
static int exceeded_calls;

static void on_exceeded(struct tr_alloc *told) {
        ck_assert_ptr_eq(told, &alloc);
        exceeded_calls++;
}

static void setup(void) {
        tr_alloc_init(&alloc, CEILING, &shared, &total);
        alloc.on_exceeded = on_exceeded;
        exceeded_calls = 0;
}

/* For a new block Lua tells a kind of object in place of a size. */
static void *allocate(size_t bytes) {
        return tr_alloc_lua(&alloc, NULL, 8, bytes);
}

START_TEST(what_is_given_back_is_not_counted) {
        void *a, *b;

        setup();
        a = allocate(1000);
        b = allocate(2000);
        ck_assert_uint_eq(alloc.used_bytes, 3000);
        ck_assert_uint_eq(shared, 3000);
        a = tr_alloc_lua(&alloc, a, 1000, 5000);
        ck_assert_uint_eq(alloc.used_bytes, 7000);
        a = tr_alloc_lua(&alloc, a, 5000, 10);
        ck_assert_uint_eq(alloc.used_bytes, 2010);
        tr_alloc_lua(&alloc, a, 10, 0);
        tr_alloc_lua(&alloc, b, 2000, 0);
        ck_assert_ptr_null(tr_alloc_lua(&alloc, NULL, 8, 0));
        ck_assert_uint_eq(alloc.used_bytes, 0);
        ck_assert_uint_eq(shared, 0);
}
END_TEST

START_TEST(the_ceiling_is_kept) {
        void *a;

        setup();
        a = allocate(CEILING);
        ck_assert_ptr_nonnull(a);
        ck_assert_ptr_null(allocate(1));
        a = tr_alloc_lua(&alloc, a, CEILING, CEILING - 100);
        ck_assert_ptr_null(tr_alloc_lua(&alloc, a, CEILING - 100, CEILING + 1));
        tr_alloc_lua(&alloc, a, CEILING - 100, 0);
}
END_TEST

/* Lua tries again after a collection. */
START_TEST(a_request_fails_when_it_is_refused_twice) {
        void *a;

        setup();
        a = allocate(100);
        ck_assert_ptr_null(allocate(CEILING));
        ck_assert(!alloc.exceeded);
        a = tr_alloc_lua(&alloc, a, 100, 200);
        ck_assert_ptr_null(allocate(CEILING));
        ck_assert(!alloc.exceeded);
        ck_assert_ptr_null(allocate(CEILING));
        ck_assert(alloc.exceeded);
        ck_assert_int_eq(exceeded_calls, 1);
        tr_alloc_lua(&alloc, a, 200, 0);
        ck_assert(alloc.exceeded);
}
END_TEST

/* No collection makes room for it. */
START_TEST(what_is_larger_than_the_ceiling_fails_at_once) {
        setup();
        ck_assert_ptr_null(allocate(LARGE));
        ck_assert(alloc.exceeded);
        ck_assert_int_eq(exceeded_calls, 1);
}
END_TEST

START_TEST(under_a_margin_nobody_is_interrupted) {
        void *a;

        setup();
        alloc.margin_bytes = CEILING / 2;
        a = allocate(CEILING / 2);
        ck_assert_ptr_nonnull(a);
        ck_assert_ptr_null(allocate(1));
        ck_assert_ptr_null(allocate(1));
        ck_assert(alloc.exceeded);
        ck_assert_int_eq(exceeded_calls, 0);
        tr_alloc_lua(&alloc, a, CEILING / 2, 0);
}
END_TEST

START_TEST(more_in_use_than_a_margin_leaves_is_not_less_than_none) {
        void *a;

        setup();
        a = allocate(CEILING);
        alloc.margin_bytes = CEILING / 2;
        ck_assert_ptr_null(allocate(1));
        alloc.margin_bytes = 0;
        tr_alloc_lua(&alloc, a, CEILING, 0);
}
END_TEST

START_TEST(closing_has_a_reserve) {
        void *a, *b;

        setup();
        a = allocate(CEILING);
        alloc.closing = true;
        b = allocate(1000);
        ck_assert_ptr_nonnull(b);
        ck_assert_ptr_null(allocate(LARGE));
        tr_alloc_lua(&alloc, a, CEILING, 0);
        tr_alloc_lua(&alloc, b, 1000, 0);
}
END_TEST

START_TEST(storage_outside_of_lua_is_charged) {
        setup();
        ck_assert(tr_alloc_charge(&alloc, CEILING));
        ck_assert(!tr_alloc_charge(&alloc, 1));
        ck_assert_ptr_null(allocate(1));
        ck_assert(alloc.exceeded);
        tr_alloc_discharge(&alloc, CEILING);
        ck_assert_uint_eq(alloc.used_bytes, 0);
}
END_TEST

START_TEST(the_systems_figure_follows) {
        setup();
        alloc.max_bytes = LARGE;
        ck_assert(tr_alloc_charge(&alloc, 100));
        tr_alloc_report(&alloc);
        ck_assert_uint_eq(total, 100);
        ck_assert(tr_alloc_charge(&alloc, LARGE - 100));
        ck_assert_uint_eq(total, LARGE);
        tr_alloc_discharge(&alloc, LARGE);
        ck_assert_uint_eq(total, 0);
}
END_TEST

suite_main("alloc", what_is_given_back_is_not_counted, the_ceiling_is_kept, a_request_fails_when_it_is_refused_twice,
           what_is_larger_than_the_ceiling_fails_at_once, under_a_margin_nobody_is_interrupted,
           more_in_use_than_a_margin_leaves_is_not_less_than_none,
           closing_has_a_reserve, storage_outside_of_lua_is_charged, the_systems_figure_follows);
