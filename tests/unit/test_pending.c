/* SPDX-License-Identifier: Apache-2.0 */
/* Pending requests: found by id whatever the ids are, bounded, and in the order of their deadlines. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/core/stock.h"
#include "daemon/io/pending.h"
#include "tests/unit/failing.h"
#include "tests/unit/suite.h"

static struct tr_pending pending;

static struct tr_message *message_new(uint32_t id) {
        struct tr_message *message = tr_message_new(TR_MESSAGE_HANDLER, "h", 1, NULL, 0, 0);
        ck_assert_ptr_nonnull(message);
        message->ask.id = id;
        return message;
}

/* Taken out, and freed. */
static void end(struct tr_message *message) {
        ck_assert(tr_pending_remove(&pending, message));
        ck_assert(!tr_pending_remove(&pending, message));
        tr_message_unref(message);
}

START_TEST(each_is_found_by_its_id) {
        enum {
                COUNT = 10000
        };
        static struct tr_message *messages[COUNT];
        ck_assert_int_eq(tr_pending_init(&pending), 0);
        ck_assert_ptr_null(tr_pending_find(&pending, 0));
        for (uint32_t i = 0; i < COUNT; i++) {
                messages[i] = message_new(i * 65536);
                ck_assert_int_eq(tr_pending_add(&pending, messages[i], TR_NEVER, COUNT), 0);
        }
        ck_assert_uint_eq(pending.count, COUNT);
        for (uint32_t i = 0; i < COUNT; i++)
                ck_assert_ptr_eq(tr_pending_find(&pending, i * 65536), messages[i]);
        ck_assert_ptr_null(tr_pending_find(&pending, 1));
        for (uint32_t i = 0; i < COUNT; i += 2)
                end(messages[i]);
        for (uint32_t i = 0; i < COUNT; i++)
                ck_assert_ptr_eq(tr_pending_find(&pending, i * 65536), i % 2 ? messages[i] : NULL);
        for (uint32_t i = 1; i < COUNT; i += 2)
                end(messages[i]);
        ck_assert_uint_eq(pending.count, 0);
        tr_pending_deinit(&pending);
}
END_TEST

START_TEST(an_id_is_there_once) {
        struct tr_message *first = message_new(7), *second = message_new(7);
        ck_assert_int_eq(tr_pending_init(&pending), 0);
        ck_assert_int_eq(tr_pending_add(&pending, first, TR_NEVER, 10), 0);
        ck_assert_int_eq(tr_pending_add(&pending, second, TR_NEVER, 10), TR_PENDING_DUPLICATE);
        ck_assert(!tr_pending_remove(&pending, second));
        end(first);
        ck_assert_int_eq(tr_pending_add(&pending, second, TR_NEVER, 10), 0);
        end(second);
        tr_pending_deinit(&pending);
}
END_TEST

START_TEST(there_are_no_more_than_allowed) {
        struct tr_message *first = message_new(1), *second = message_new(2);
        ck_assert_int_eq(tr_pending_init(&pending), 0);
        ck_assert_int_eq(tr_pending_add(&pending, first, TR_NEVER, 1), 0);
        ck_assert_int_eq(tr_pending_add(&pending, second, 5, 1), TR_PENDING_FULL);
        ck_assert_ptr_null(tr_pending_take_due(&pending, 5));
        end(first);
        ck_assert_int_eq(tr_pending_add(&pending, second, TR_NEVER, 1), 0);
        end(second);
        tr_pending_deinit(&pending);
}
END_TEST

START_TEST(deadlines_come_in_order_and_leave_it_pending) {
        struct tr_message *late = message_new(1), *soon = message_new(2), *never = message_new(3),
                          *gone = message_new(4);
        ck_assert_int_eq(tr_pending_init(&pending), 0);
        ck_assert_int_eq(tr_pending_add(&pending, late, 200, 10), 0);
        ck_assert_int_eq(tr_pending_add(&pending, soon, 100, 10), 0);
        ck_assert_int_eq(tr_pending_add(&pending, never, TR_NEVER, 10), 0);
        ck_assert_int_eq(tr_pending_add(&pending, gone, 50, 10), 0);
        end(gone);
        ck_assert_uint_eq(tr_timers_next_ns(&pending.deadlines), 100);
        ck_assert_ptr_null(tr_pending_take_due(&pending, 99));
        ck_assert_ptr_eq(tr_pending_take_due(&pending, 300), soon);
        ck_assert_ptr_eq(tr_pending_take_due(&pending, 300), late);
        ck_assert_ptr_null(tr_pending_take_due(&pending, 300));
        ck_assert_ptr_eq(tr_pending_find(&pending, 2), soon);
        end(late);
        end(soon);
        end(never);
        tr_pending_deinit(&pending);
}
END_TEST

START_TEST(all_are_taken_at_once) {
        enum {
                COUNT = 1000
        };
        ck_assert_int_eq(tr_pending_init(&pending), 0);
        for (uint32_t i = 0; i < COUNT; i++)
                ck_assert_int_eq(tr_pending_add(&pending, message_new(i), i % 2 ? i : TR_NEVER, COUNT), 0);
        uint32_t count = 0;
        for (struct tr_message *all = tr_pending_take_all(&pending), *next; all; all = next, count++) {
                next = all->ask.next;
                ck_assert(!tr_pending_remove(&pending, all));
                tr_message_unref(all);
                tr_message_unref(all); /* the one of message_new() */
        }
        ck_assert_uint_eq(count, COUNT);
        ck_assert_uint_eq(pending.count, 0);
        ck_assert_uint_eq(tr_timers_next_ns(&pending.deadlines), TR_NEVER);
        tr_pending_deinit(&pending);
}
END_TEST

START_TEST(a_want_of_memory_leaves_it_out) {
        tr_stock_disable();
        struct tr_message *message = message_new(1);
        ck_assert_int_eq(tr_pending_init(&pending), 0);
        long n = 0;
        int r;
        do {
                failing_arm(++n);
                r = tr_pending_add(&pending, message, 100, 10);
                failing_arm(0);
                ck_assert_int_eq(r, failing_hit() ? -ENOMEM : 0);
                ck_assert_ptr_eq(tr_pending_find(&pending, 1), r ? NULL : message);
                ck_assert_uint_eq(tr_timers_next_ns(&pending.deadlines), r ? TR_NEVER : 100);
        } while (r);
        ck_assert_int_gt(n, 2);
        end(message);
        tr_pending_deinit(&pending);
}
END_TEST

suite_main("pending", each_is_found_by_its_id, an_id_is_there_once, there_are_no_more_than_allowed,
           deadlines_come_in_order_and_leave_it_pending, all_are_taken_at_once, a_want_of_memory_leaves_it_out);
