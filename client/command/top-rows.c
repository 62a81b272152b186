/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command/top-rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/printable.h"

/* "actor:" and as much of the handle as may be shown: whoever has seen a whole one may use it. */
#define HANDLE_SHOWN (6 + 8)

/* A text of the row; "" where the map has none. NULL: no memory. */
static char *text_in(const struct troupe_value *map, const char *key) {
        struct troupe_value value;
        const char *data;
        size_t len;
        char *text;

        if (troupe_value_get(map, key, &value) || troupe_value_string(&value, &data, &len))
                return strdup("");
        text = strndup(data, len);
        if (text)
                tr_printable(text, "");
        return text;
}

static uint64_t number_in(const struct troupe_value *map, const char *key) {
        struct troupe_value value;
        int64_t number;

        return troupe_value_get(map, key, &value) || troupe_value_int(&value, &number) || number < 0 ? 0 : number;
}

/* A worker is known by its pool and by its slot there. */
static char *worker_name_in(const struct troupe_value *map) {
        char *pool = text_in(map, "pool"), *slot = text_in(map, "name"), *name = NULL;

        if (pool && slot && asprintf(&name, "%s.%s", pool, slot) < 0)
                name = NULL;
        free(pool);
        free(slot);
        return name;
}

static char *name_in(const struct troupe_value *map, const char *handle) {
        static const char *const keys[] = { "published", "name" };
        struct troupe_value pool;
        char *name = NULL;

        if (!troupe_value_get(map, "pool", &pool))
                return worker_name_in(map);
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
                name = text_in(map, keys[i]);
                if (!name || *name)
                        return name;
                free(name);
        }
        return strndup(handle, HANDLE_SHOWN);
}

static void row_deinit(struct tr_top_row *row) {
        free(row->name);
        free(row->actor);
        free(row->state);
        free(row->handler);
}

static int read_row(struct tr_top_row *ret_row, const struct troupe_value *map) {
        struct tr_top_row row = { .rate = -1, .cpu_percent = -1 };
        struct troupe_value handle;

        if (troupe_value_get(map, "handle", &handle) || troupe_value_handle(&handle, row.handle))
                return -EBADMSG;
        row.name = name_in(map, row.handle);
        row.actor = text_in(map, "actor");
        row.state = text_in(map, "state");
        row.handler = text_in(map, "handler");
        if (!row.name || !row.actor || !row.state || !row.handler) {
                row_deinit(&row);
                return -ENOMEM;
        }
        row.mailbox = number_in(map, "mailbox");
        row.heap_bytes = number_in(map, "heap");
        row.messages = number_in(map, "messages");
        row.cpu_ms = number_in(map, "cpu");
        *ret_row = row;
        return 0;
}

/* What has a thread: a pool, say, is what its workers are. */
static bool is_shown(const struct troupe_value *map) {
        struct troupe_value kind;
        const char *text;
        size_t len;

        if (troupe_value_get(map, "kind", &kind) || troupe_value_string(&kind, &text, &len))
                return true;
        return (len == strlen("actor") && !memcmp(text, "actor", len)) ||
               (len == strlen("worker") && !memcmp(text, "worker", len));
}

static int compare_handles(const void *a, const void *b) {
        return strcmp(((const struct tr_top_row *)a)->handle, ((const struct tr_top_row *)b)->handle);
}

/* How much more per `span`; negative where it has become less, which says nothing. */
static double growth(uint64_t now, uint64_t before, double span) {
        return now < before ? -1 : (now - before) / span;
}

static void find_rates(struct tr_top_rows *rows, struct tr_top_rows *before) {
        double seconds = (rows->at_ms - before->at_ms) / 1000.0;

        if (seconds <= 0 || !before->count)
                return;
        qsort(before->rows, before->count, sizeof(*before->rows), compare_handles);
        for (size_t i = 0; i < rows->count; i++) {
                struct tr_top_row *row = &rows->rows[i];
                const struct tr_top_row *old =
                        bsearch(row, before->rows, before->count, sizeof(*before->rows), compare_handles);

                if (!old)
                        continue;
                row->rate = growth(row->messages, old->messages, seconds);
                row->cpu_percent = growth(row->cpu_ms, old->cpu_ms, seconds * 10);
        }
}

int tr_top_rows_read(struct tr_top_rows *ret_rows, const struct troupe_value *list, int64_t now_ms,
                     struct tr_top_rows *before) {
        struct tr_top_rows rows = { .at_ms = now_ms };
        struct troupe_value map;
        struct troupe_walk walk;
        int r = troupe_walk_begin(&walk, list);

        /* a count from outside sizes nothing before there are as many bytes */
        if (r || walk.is_map || walk.left > list->size)
                return -EBADMSG;
        rows.rows = calloc(walk.left + 1, sizeof(*rows.rows));
        if (!rows.rows)
                return -ENOMEM;
        while ((r = troupe_walk_next(&walk, NULL, &map)) > 0) {
                if (!is_shown(&map))
                        continue;
                r = read_row(&rows.rows[rows.count], &map);
                if (r)
                        break;
                rows.count++;
        }
        if (r) {
                tr_top_rows_deinit(&rows);
                return r;
        }
        find_rates(&rows, before);
        *ret_rows = rows;
        return 0;
}

void tr_top_rows_deinit(struct tr_top_rows *rows) {
        for (size_t i = 0; i < rows->count; i++)
                row_deinit(&rows->rows[i]);
        free(rows->rows);
        *rows = (struct tr_top_rows){ 0 };
}

/* The larger before the smaller. */
static int compare_numbers(double a, double b) {
        return (a < b) - (a > b);
}

struct order {
        enum tr_top_column by;
        bool is_reversed;
};

static int compare_by(const struct tr_top_row *a, const struct tr_top_row *b, enum tr_top_column by) {
        switch (by) {
        case TR_TOP_ACTOR:
                return strcmp(a->actor, b->actor);
        case TR_TOP_STATE:
                return strcmp(a->state, b->state);
        case TR_TOP_MAILBOX:
                return compare_numbers(a->mailbox, b->mailbox);
        case TR_TOP_RATE:
                return compare_numbers(a->rate, b->rate);
        case TR_TOP_CPU:
                return compare_numbers(a->cpu_percent, b->cpu_percent);
        case TR_TOP_HEAP:
                return compare_numbers(a->heap_bytes, b->heap_bytes);
        case TR_TOP_HANDLER:
                /* who does nothing comes last */
                return !*a->handler != !*b->handler ? !*a->handler - !*b->handler : strcmp(a->handler, b->handler);
        default:
                return strcmp(a->name, b->name);
        }
}

static int compare(const void *a, const void *b, void *userdata) {
        const struct tr_top_row *first = a, *second = b;
        const struct order *order = userdata;
        int r = compare_by(first, second, order->by);

        if (r)
                return order->is_reversed ? -r : r;
        r = strcmp(first->name, second->name);
        return r ? r : compare_handles(first, second);
}

void tr_top_rows_sort(struct tr_top_rows *rows, enum tr_top_column by, bool is_reversed) {
        struct order order = { by, is_reversed };

        if (rows->count)
                qsort_r(rows->rows, rows->count, sizeof(*rows->rows), compare, &order);
}
