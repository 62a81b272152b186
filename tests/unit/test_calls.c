/* SPDX-License-Identifier: Apache-2.0 */
/* What a client was asked: found by its id, whatever else was answered meanwhile, and swept when it was given up. */
#include "config.h"

#include <errno.h>

#include "daemon/core/stock.h"
#include "daemon/io/calls.h"
#include "tests/unit/failing.h"
#include "tests/unit/suite.h"

static struct tr_calls calls;
static struct tr_callee *callee;

static struct tr_message *message_new(void) {
        struct tr_message *message = tr_message_new(TR_MESSAGE_HANDLER, "h", 1, "\x01", 1, 1);
        ck_assert_ptr_nonnull(message);
        return message;
}

static uint32_t add(struct tr_message *message, bool waiting) {
        uint32_t id;
        ck_assert_int_eq(tr_calls_add(&calls, message, NULL, waiting, &id), 0);
        return id;
}

static uint32_t drop_all(struct tr_list *messages) {
        struct tr_message *message;
        uint32_t count = 0;
        tr_list_for_each(message, messages, link) {
                tr_list_unlink(&message->link);
                tr_message_unref(message);
                count++;
        }
        return count;
}

static void begin(void) {
        calls = (struct tr_calls){ 0 };
}

static void end(void) {
        struct tr_list rest = TR_LIST_INIT(rest);
        tr_calls_take_all(&calls, NULL, &rest);
        drop_all(&rest);
        ck_assert_uint_eq(calls.count, 0);
        ck_assert_uint_eq(calls.bytes, 0);
}

START_TEST(each_is_found_by_its_id) {
        enum {
                COUNT = 5000
        };
        static uint32_t ids[COUNT];
        static struct tr_message *messages[COUNT];
        begin();
        ck_assert_ptr_null(tr_calls_take(&calls, 0));
        /* Every third stays for ever, the others are answered soon: their slots are used again and again. */
        for (uint32_t i = 0; i < COUNT; i++) {
                messages[i] = message_new();
                ids[i] = add(messages[i], false);
                if (i % 3 == 0)
                        continue;
                ck_assert_ptr_eq(tr_calls_take_sent(&calls, ids[i], &callee), messages[i]);
                ck_assert_ptr_null(tr_calls_take_sent(&calls, ids[i], &callee));
                tr_message_unref(messages[i]);
        }
        ck_assert_uint_eq(calls.count, (COUNT + 2) / 3);
        ck_assert_uint_eq(calls.bytes, calls.count * tr_call_bytes(messages[0]));
        for (uint32_t i = 0; i < COUNT; i += 3) {
                ck_assert_ptr_eq(tr_calls_take(&calls, ids[i]), messages[i]);
                tr_message_unref(messages[i]);
        }
        end();
}
END_TEST

START_TEST(ids_go_round_and_pass_over_those_in_use) {
        begin();
        struct tr_message *kept = message_new();
        calls.next_id = 3;
        ck_assert_uint_eq(add(kept, false), 3);
        calls.next_id = UINT32_MAX;
        ck_assert_uint_eq(add(message_new(), false), UINT32_MAX);
        for (uint32_t id = 0; id < 3; id++)
                ck_assert_uint_eq(add(message_new(), false), id);
        ck_assert_uint_eq(add(message_new(), false), 4);
        struct tr_message *found = tr_calls_take(&calls, 3);
        ck_assert_ptr_eq(found, kept);
        tr_message_unref(found);
        end();
}
END_TEST

START_TEST(what_waits_is_not_answered_and_not_swept) {
        begin();
        struct tr_list settled = TR_LIST_INIT(settled);
        struct tr_message *message = message_new();
        bool begun;
        uint32_t id = add(message, true);
        ck_assert_ptr_null(tr_calls_take_sent(&calls, id, &callee));
        ck_assert(tr_message_settle(message, &begun));
        tr_calls_sweep(&calls, 100, &settled);
        ck_assert_uint_eq(drop_all(&settled), 0);
        tr_calls_set_sent(&calls, id);
        tr_calls_sweep(&calls, 100, &settled);
        ck_assert_uint_eq(drop_all(&settled), 1);
        ck_assert_ptr_null(tr_calls_take(&calls, id));
        end();
}
END_TEST

START_TEST(what_was_given_up_is_swept_a_few_slots_at_a_time) {
        begin();
        struct tr_list settled = TR_LIST_INIT(settled);
        bool begun;
        for (int i = 0; i < 100; i++) {
                struct tr_message *message = message_new();
                add(message, false);
                if (i % 2)
                        ck_assert(tr_message_settle(message, &begun));
        }
        uint32_t rounds = 0;
        while (calls.count > 50) {
                tr_calls_sweep(&calls, 2, &settled);
                rounds++;
        }
        ck_assert_uint_eq(drop_all(&settled), 50);
        ck_assert_uint_le(rounds, calls.room / 2);
        tr_calls_sweep(&calls, UINT32_MAX, &settled);
        ck_assert_uint_eq(drop_all(&settled), 0);
        end();
}
END_TEST

START_TEST(who_leaves_takes_out_its_own) {
        /* They are told apart, and nothing of them is looked at. */
        struct tr_callee *one = (struct tr_callee *)&calls, *other = (struct tr_callee *)&callee;
        struct tr_list taken = TR_LIST_INIT(taken);
        uint32_t ids[20];
        begin();
        for (uint32_t i = 0; i < 20; i++)
                ck_assert_int_eq(tr_calls_add(&calls, message_new(), i % 4 ? one : other, i % 2, &ids[i]), 0);
        tr_calls_take_all(&calls, other, &taken);
        ck_assert_uint_eq(drop_all(&taken), 5);
        ck_assert_uint_eq(calls.count, 15);
        for (uint32_t i = 0; i < 20; i += 2) {
                struct tr_message *message = tr_calls_take_sent(&calls, ids[i], &callee);
                ck_assert_int_eq(message != NULL, i % 4 != 0);
                if (message)
                        ck_assert_ptr_eq(callee, one);
                tr_message_unref(message);
        }
        tr_calls_take_all(&calls, one, &taken);
        ck_assert_uint_eq(drop_all(&taken), 10);
        end();
}
END_TEST

START_TEST(without_memory_nothing_has_happened) {
        tr_stock_disable();
        begin();
        for (int i = 0; i < 4; i++)
                add(message_new(), false);
        struct tr_message *message = message_new();
        uint32_t id = 77;
        failing_arm(1);
        ck_assert_int_eq(tr_calls_add(&calls, message, NULL, false, &id), -ENOMEM);
        failing_arm(0);
        ck_assert_uint_eq(id, 77);
        ck_assert_uint_eq(calls.count, 4);
        ck_assert_uint_eq(add(message, false), 4);
        end();
}
END_TEST

suite_main("calls", each_is_found_by_its_id, ids_go_round_and_pass_over_those_in_use,
           what_waits_is_not_answered_and_not_swept, what_was_given_up_is_swept_a_few_slots_at_a_time,
           who_leaves_takes_out_its_own, without_memory_nothing_has_happened);
