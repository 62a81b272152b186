/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_TABLE_H
#define TR_COMMAND_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/troupe.h"

/*
 * Tables for people: columns as wide as what is in them. What comes from others (names, handlers) is printable.h's.
 */

enum tr_cell {
        TR_CELL_TEXT,
        TR_CELL_NUMBER, /* to the right */
        TR_CELL_BYTES,  /* to the right, as 1.5M */
        TR_CELL_DATE,   /* milliseconds since 1970, as 2030-01-31 18:30:00 here */
        TR_CELL_ERROR,  /* the map of an error, as `fault: what happened` */
};

struct tr_column {
        const char *key; /* of the map that is the row */
        const char *title;
        enum tr_cell cell;
};

/* Prints an array of maps on standard output, a row for each. 0, -EBADMSG where it is none, -ENOMEM. */
int tr_table_print(const struct troupe_value *rows, const struct tr_column *columns, size_t columns_count);

/* What is in a cell, for free(): "-" where there is nothing; NULL: no memory. */
char *tr_cell_text(const struct troupe_value *value, enum tr_cell cell);
/* 1536 as 1.5K. */
void tr_bytes_text(int64_t bytes, char ret_text[static 32]);
/* How many columns of a terminal a text takes, one for each character. */
size_t tr_cell_width(const char *text);
/* Whether standard output shows colours: it is a terminal and NO_COLOR is not set. */
bool tr_table_has_colours(void);

#endif
