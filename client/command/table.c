/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/command/printable.h"

#define GAP "  "

struct table {
        const struct tr_column *columns;
        size_t columns_count;
        size_t rows_count;
        char **cells;  /* row by row; the titles are not among them */
        size_t *width; /* of each column */
};

bool tr_table_has_colours(void) {
        const char *no_color = getenv("NO_COLOR");

        return isatty(STDOUT_FILENO) && (!no_color || !*no_color);
}

size_t tr_cell_width(const char *text) {
        size_t width = 0;

        for (; *text; text++)
                width += (*text & 0xc0) != 0x80; /* not the second byte of a character, or a later one */
        return width;
}

void tr_bytes_text(int64_t bytes, char ret_text[static 32]) {
        static const char units[] = "KMGT";
        double number = bytes; /* the daemon's own numbers are small enough for one */
        int unit = -1;

        while (number >= 1024 && unit + 1 < (int)strlen(units)) {
                number /= 1024;
                unit++;
        }
        if (unit < 0)
                snprintf(ret_text, 32, "%" PRId64, bytes);
        else
                snprintf(ret_text, 32, "%.*f%c", number < 10 ? 1 : 0, number, units[unit]);
}

/* The year is one that a person can mean. */
#define DATE_MAX_MS INT64_C(253402300799999)

static char *date_text(int64_t ms) {
        time_t seconds = (time_t)(ms / 1000);
        char text[32];
        struct tm here;

        localtime_r(&seconds, &here);
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &here);
        return strdup(text);
}

static bool find_text(const struct troupe_value *map, const char *key, const char **ret_text, size_t *ret_len) {
        struct troupe_value value;

        return !troupe_value_get(map, key, &value) && !troupe_value_string(&value, ret_text, ret_len);
}

/* NULL: it is no error's map, or there is no memory. */
static char *error_text(const struct troupe_value *error) {
        const char *code, *message;
        size_t code_len, message_len;
        char *text;

        if (!find_text(error, "code", &code, &code_len) || !find_text(error, "message", &message, &message_len))
                return NULL;
        if (asprintf(&text, "%.*s: %.*s", (int)code_len, code, (int)message_len, message) < 0)
                return NULL;
        tr_printable(text, "");
        return text;
}

char *tr_cell_text(const struct troupe_value *value, enum tr_cell cell) {
        const char *data;
        int64_t number;
        size_t len;
        char *text;
        int type = troupe_value_type(value);

        if (type < 0 || type == TROUPE_NIL)
                return strdup("-");
        if (cell == TR_CELL_DATE && !troupe_value_int(value, &number) && number >= 0 && number <= DATE_MAX_MS)
                return date_text(number);
        if (cell == TR_CELL_ERROR && (text = error_text(value)))
                return text;
        if (cell == TR_CELL_BYTES && !troupe_value_int(value, &number)) {
                char bytes[32];

                tr_bytes_text(number, bytes);
                return strdup(bytes);
        }
        if (type == TROUPE_STRING && !troupe_value_string(value, &data, &len))
                text = strndup(data, len);
        else if (troupe_value_json(value, &text, NULL))
                text = NULL;
        if (text)
                tr_printable(text, "");
        return text;
}

static int read_row(struct table *table, const struct troupe_value *map) {
        for (size_t i = 0; i < table->columns_count; i++) {
                const struct tr_column *column = &table->columns[i];
                struct troupe_value value = { 0 };
                int r = troupe_value_get(map, column->key, &value);
                size_t width;
                char *text;

                if (r && r != -ENOENT)
                        return -EBADMSG;
                text = tr_cell_text(&value, column->cell);
                if (!text)
                        return -ENOMEM;
                table->cells[table->rows_count * table->columns_count + i] = text;
                width = tr_cell_width(text);
                if (width > table->width[i])
                        table->width[i] = width;
        }
        table->rows_count++;
        return 0;
}

static int read_rows(struct table *table, const struct troupe_value *rows) {
        struct troupe_value row;
        struct troupe_walk walk;
        int r = troupe_walk_begin(&walk, rows);

        if (r || walk.is_map)
                return -EBADMSG;
        /* a count from outside sizes nothing before there are as many bytes */
        if (walk.left > rows->size)
                return -EBADMSG;
        table->cells = calloc(walk.left * table->columns_count + 1, sizeof(*table->cells));
        table->width = calloc(table->columns_count, sizeof(*table->width));
        if (!table->cells || !table->width)
                return -ENOMEM;
        for (size_t i = 0; i < table->columns_count; i++)
                table->width[i] = strlen(table->columns[i].title);
        while ((r = troupe_walk_next(&walk, NULL, &row)) > 0) {
                r = read_row(table, &row);
                if (r)
                        return r;
        }
        return r;
}

static void print_cell(const struct table *table, size_t column, const char *text) {
        size_t padding = table->width[column] - tr_cell_width(text);
        bool is_last = column + 1 == table->columns_count;

        if (table->columns[column].cell == TR_CELL_NUMBER || table->columns[column].cell == TR_CELL_BYTES)
                printf("%*s%s", (int)padding, "", text);
        else
                printf("%s%*s", text, is_last ? 0 : (int)padding, "");
        fputs(is_last ? "\n" : GAP, stdout);
}

static void print(const struct table *table) {
        bool has_colours = tr_table_has_colours();

        fputs(has_colours ? "\033[1m" : "", stdout);
        for (size_t i = 0; i < table->columns_count; i++)
                print_cell(table, i, table->columns[i].title);
        fputs(has_colours ? "\033[0m" : "", stdout);
        for (size_t i = 0; i < table->rows_count * table->columns_count; i++)
                print_cell(table, i % table->columns_count, table->cells[i]);
}

int tr_table_print(const struct troupe_value *rows, const struct tr_column *columns, size_t columns_count) {
        struct table table = { .columns = columns, .columns_count = columns_count };
        int r = read_rows(&table, rows);

        if (!r)
                print(&table);
        for (size_t i = 0; table.cells && table.cells[i]; i++)
                free(table.cells[i]);
        free(table.cells);
        free(table.width);
        return r;
}
