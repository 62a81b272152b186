/* SPDX-License-Identifier: Apache-2.0 */
/* What `troupe top` makes of two answers of `list`: names, rates, and the order. */
#include "config.h"

#include <string.h>

#include "client/command/top-rows.h"
#include "client/troupe.h"
#include "tests/unit/suite.h"

#define A "actor:000102030405060708090a0b0c0d0e0f"
#define B "actor:101112131415161718191a1b1c1d1e1f"
#define C "actor:202122232425262728292a2b2c2d2e2f"

/* The rows of a list in JSON, so many milliseconds after the beginning; `before` as for the next one. */
static struct tr_top_rows read_rows(const char *json, int64_t now_ms, struct tr_top_rows *before) {
        struct tr_top_rows rows = { 0 };
        struct troupe_value list;

        ck_assert_int_eq(troupe_pack(&list, "j", json), 0);
        ck_assert_int_eq(tr_top_rows_read(&rows, &list, now_ms, before), 0);
        troupe_value_free(&list);
        tr_top_rows_deinit(before);
        return rows;
}

static void names_are(const struct tr_top_rows *rows, const char *expected) {
        char names[256] = "";

        for (size_t i = 0; i < rows->count; i++)
                strcat(strcat(names, rows->rows[i].name), " ");
        ck_assert_str_eq(names, expected);
}

START_TEST(a_row_is_what_the_list_says) {
        struct tr_top_rows none = { 0 }, rows;

        rows = read_rows("[{\"handle\":\"" A
                         "\",\"published\":\"p.x\",\"name\":\"label\",\"actor\":\"m:M\",\"state\":\"running\","
                         "\"handler\":\"work\",\"mailbox\":3,\"heap\":2048,\"messages\":17,\"cpu\":250,\"future\":[1]},"
                         "{\"handle\":\"" B "\",\"name\":\"label\"},"
                         "{\"handle\":\"" C "\",\"name\":\"\",\"published\":null,\"mailbox\":\"many\"}]",
                         0, &none);
        ck_assert_uint_eq(rows.count, 3);
        names_are(&rows, "p.x label actor:20212223 ");
        ck_assert_str_eq(rows.rows[0].actor, "m:M");
        ck_assert_str_eq(rows.rows[0].state, "running");
        ck_assert_str_eq(rows.rows[0].handler, "work");
        ck_assert_uint_eq(rows.rows[0].mailbox, 3);
        ck_assert_uint_eq(rows.rows[0].heap_bytes, 2048);
        ck_assert_uint_eq(rows.rows[0].messages, 17);
        ck_assert_uint_eq(rows.rows[0].cpu_ms, 250);
        ck_assert(rows.rows[0].rate < 0 && rows.rows[0].cpu_percent < 0);
        ck_assert_str_eq(rows.rows[2].handler, "");
        ck_assert_uint_eq(rows.rows[2].mailbox, 0);
        tr_top_rows_deinit(&rows);
}
END_TEST

START_TEST(what_has_a_thread_is_shown) {
        struct tr_top_rows rows = { 0 };

        rows = read_rows("[{\"handle\":\"pool:"
                         "808102030405060708090a0b0c0d0e0f\",\"kind\":\"pool\",\"name\":\"p\"},"
                         "{\"handle\":\"" A "\",\"kind\":\"worker\",\"pool\":\"p\",\"name\":\"w-1\"},"
                         "{\"kind\":\"component\",\"name\":\"c\"},"
                         "{\"handle\":\"" B "\",\"kind\":\"actor\",\"name\":\"a\"}]",
                         0, &rows);
        names_are(&rows, "p.w-1 a ");
        tr_top_rows_deinit(&rows);
}
END_TEST

START_TEST(rates_are_differences) {
        struct tr_top_rows rows = { 0 };

        rows = read_rows("[{\"handle\":\"" B "\",\"name\":\"b\",\"messages\":5,\"cpu\":100},"
                         "{\"handle\":\"" A "\",\"name\":\"a\",\"messages\":10,\"cpu\":0}]",
                         1000, &rows);
        rows = read_rows("[{\"handle\":\"" A "\",\"name\":\"a\",\"messages\":110,\"cpu\":1000},"
                         "{\"handle\":\"" B "\",\"name\":\"b\",\"messages\":4,\"cpu\":100},"
                         "{\"handle\":\"" C "\",\"name\":\"c\",\"messages\":4,\"cpu\":100}]",
                         3000, &rows);
        ck_assert_double_eq(rows.rows[0].rate, 50);
        ck_assert_double_eq(rows.rows[0].cpu_percent, 50);
        /* less than before says nothing; who was not there has no rate yet */
        ck_assert(rows.rows[1].rate < 0);
        ck_assert_double_eq(rows.rows[1].cpu_percent, 0);
        ck_assert(rows.rows[2].rate < 0 && rows.rows[2].cpu_percent < 0);
        /* no time has passed */
        rows = read_rows("[{\"handle\":\"" A "\",\"messages\":120,\"cpu\":1000}]", 3000, &rows);
        ck_assert(rows.rows[0].rate < 0);
        tr_top_rows_deinit(&rows);
}
END_TEST

START_TEST(the_order) {
        struct tr_top_rows rows = { 0 };

        rows = read_rows(
                "[{\"handle\":\"" A "\",\"name\":\"x\",\"actor\":\"1\",\"mailbox\":1,\"heap\":7,\"state\":\"idle\"},"
                "{\"handle\":\"" B "\",\"name\":\"z\",\"actor\":\"3\",\"mailbox\":9,\"heap\":7,\"state\":\"waiting\","
                "\"handler\":\"a\"},"
                "{\"handle\":\"" C "\",\"name\":\"y\",\"actor\":\"2\",\"mailbox\":5,\"heap\":8,\"state\":\"idle\"}]",
                0, &rows);
        static const struct {
                enum tr_top_column by;
                bool is_reversed;
                const char *names;
        } orders[] = {
                { TR_TOP_NAME, false, "x y z " },    { TR_TOP_NAME, true, "z y x " },
                { TR_TOP_ACTOR, false, "x y z " },   { TR_TOP_ACTOR, true, "z y x " },
                { TR_TOP_MAILBOX, false, "z y x " }, { TR_TOP_MAILBOX, true, "x y z " },
                { TR_TOP_HEAP, false, "y x z " },    { TR_TOP_HEAP, true, "x z y " },
                { TR_TOP_STATE, false, "x y z " },   { TR_TOP_STATE, true, "z x y " },
                { TR_TOP_HANDLER, false, "z x y " }, { TR_TOP_HANDLER, true, "x y z " },
                { TR_TOP_CPU, false, "x y z " },     { TR_TOP_RATE, true, "x y z " },
        };

        for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
                tr_top_rows_sort(&rows, orders[i].by, orders[i].is_reversed);
                names_are(&rows, orders[i].names);
        }
        tr_top_rows_deinit(&rows);
        tr_top_rows_sort(&rows, TR_TOP_NAME, false);
}
END_TEST

START_TEST(what_is_no_list) {
        static const char *const wrong[] = {
                "{}", "1", "[1]", "[{}]", "[{\"handle\":5}]", "[{\"handle\":\"" A "\"},{}]"
        };
        struct tr_top_rows rows = { 0 }, none = { 0 };
        struct troupe_value list;

        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                ck_assert_int_eq(troupe_pack(&list, "j", wrong[i]), 0);
                ck_assert_int_lt(tr_top_rows_read(&rows, &list, 0, &none), 0);
                ck_assert_ptr_null(rows.rows);
                troupe_value_free(&list);
        }
        list = (struct troupe_value){ "\xdd\xff\xff\xff\xff", 5 };
        ck_assert_int_lt(tr_top_rows_read(&rows, &list, 0, &none), 0);
}
END_TEST

suite_main("command_top", a_row_is_what_the_list_says, what_has_a_thread_is_shown, rates_are_differences, the_order,
           what_is_no_list);
