/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_TOP_SCREEN_H
#define TR_COMMAND_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "client/command/top-rows.h"

/*
 * The terminal of `troupe top`, by ncurses, which knows terminals and how they are put back. There is one for the whole
 * program, and so is what is behind this.
 */

/* What is on the screen. */
struct tr_top_view {
        struct tr_top_rows rows;
        enum tr_top_column by;
        bool is_reversed;
        size_t first; /* row that is shown; drawing keeps it so that the screen is full */
        const char *socket;
};

/* Keys beyond the characters. */
enum {
        TR_KEY_NONE = -1,
        TR_KEY_OTHER = 0x10000,
        TR_KEY_RESIZED,
        TR_KEY_UP,
        TR_KEY_DOWN,
        TR_KEY_PAGE_UP,
        TR_KEY_PAGE_DOWN,
        TR_KEY_HOME,
        TR_KEY_END,
};

/* Takes the terminal over. False where its type is not known, or cannot do it. */
bool tr_screen_open(void);
/* Puts it back as it was. */
void tr_screen_close(void);

/* The next key that was pressed, or TR_KEY_NONE; does not wait. */
int tr_screen_key(void);
/* Draws all of it anew with the next tr_screen_draw(), whatever was thought to be there. */
void tr_screen_forget(void);
void tr_screen_draw(struct tr_top_view *view);
/* How many rows there is room for. */
size_t tr_screen_rows(void);

/* The column that a key sorts by; TR_TOP_COLUMNS: none. */
enum tr_top_column tr_screen_column_of(int key);

#endif
