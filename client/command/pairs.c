/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command/pairs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/printable.h"
#include "client/command/table.h"

/* How what is under a key is shown. */
static enum tr_cell cell_of(const char *key, size_t len) {
        static const struct {
                const char *key;
                enum tr_cell cell;
        } cells[] = {
                { "heap", TR_CELL_BYTES },          { "heap_max", TR_CELL_BYTES },
                { "mailbox_bytes", TR_CELL_BYTES }, { "mailbox_bytes_max", TR_CELL_BYTES },
                { "due", TR_CELL_DATE },            { "expires", TR_CELL_DATE },
                { "created", TR_CELL_DATE },        { "updated", TR_CELL_DATE },
                { "cause", TR_CELL_ERROR },
        };

        for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
                if (strlen(cells[i].key) == len && !memcmp(cells[i].key, key, len))
                        return cells[i].cell;
        return TR_CELL_TEXT;
}

/* The lines of an error's traceback, below it. */
static void print_traceback(const struct troupe_value *error, int width) {
        struct troupe_value value;
        const char *data;
        char *text, *rest, *line;
        size_t len;

        if (troupe_value_get(error, "traceback", &value) || troupe_value_string(&value, &data, &len) || !(text = strndup(data, len)))
                return;
        tr_printable(text, "\n\t");
        for (rest = text; (line = strsep(&rest, "\n"));)
                printf("%-*s  %s\n", width, "", line);
        free(text);
}

/* A handler as "work/2" (what it takes), "async work/2". */
static void print_handler(const struct troupe_value *handler) {
        struct troupe_value value;
        int64_t params;
        int is_async;
        char *name;

        if (!troupe_value_get(handler, "async", &value) && !troupe_value_bool(&value, &is_async) && is_async)
                fputs("async ", stdout);
        name = troupe_value_get(handler, "name", &value) ? NULL : tr_cell_text(&value, TR_CELL_TEXT);
        fputs(name ? name : "?", stdout);
        free(name);
        if (!troupe_value_get(handler, "params", &value) && !troupe_value_int(&value, &params))
                printf("/%" PRId64, params);
}

/* True where it was a list of handlers. */
static bool print_handlers(const struct troupe_value *handlers) {
        struct troupe_value handler, name;
        struct troupe_walk walk;
        const char *before = "";

        if (troupe_value_type(handlers) != TROUPE_ARRAY || troupe_walk_begin(&walk, handlers))
                return false;
        while (troupe_walk_next(&walk, NULL, &handler) > 0) {
                if (troupe_value_get(&handler, "name", &name))
                        continue;
                fputs(before, stdout);
                print_handler(&handler);
                before = ", ";
        }
        putchar('\n');
        return true;
}

static int print_pair(const struct troupe_value *key, const struct troupe_value *value, int width) {
        const char *name;
        size_t len;
        char *text;

        if (troupe_value_string(key, &name, &len))
                return 0;
        printf("%-*.*s  ", width, (int)len, name);
        if (len == strlen("handlers") && !memcmp(name, "handlers", len) && print_handlers(value))
                return 0;
        text = tr_cell_text(value, cell_of(name, len));
        if (!text)
                return -ENOMEM;
        puts(text);
        free(text);
        if (cell_of(name, len) == TR_CELL_ERROR)
                print_traceback(value, width);
        return 0;
}

int tr_pairs_print(const struct troupe_value *map) {
        struct troupe_value key, value;
        struct troupe_walk walk;
        const char *name;
        size_t len, width = 0;
        int r = troupe_walk_begin(&walk, map);

        if (r || !walk.is_map)
                return -EBADMSG;
        while ((r = troupe_walk_next(&walk, &key, &value)) > 0)
                if (!troupe_value_string(&key, &name, &len) && len > width)
                        width = len;
        if (!r)
                r = troupe_walk_begin(&walk, map);
        while (!r && (r = troupe_walk_next(&walk, &key, &value)) > 0)
                r = print_pair(&key, &value, width);
        return r;
}
