/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three lines (what it is all together, the keys, the titles) and a row for each actor. Where the terminal is narrow,
 * columns are left out, the least needed first, and what is too long is cut. Every text that comes from others is fit
 * for a terminal already (top-rows.c); what this terminal's locale has not, or would not count as a column at least,
 * becomes a `?` here, so that the columns stay where they are.
 */
#include "client/command/top-screen.h"

#include <curses.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termcap.h>
#include <wchar.h>

#include "client/command/table.h"

#define GAP 2
#define LINES_ABOVE 3
#define ESCAPE_MS 25 /* in which the rest of a key's escape sequence comes */

struct column {
        const char *title;
        char key;
        bool is_text;
        int width;         /* at least; with room for the mark behind the title */
        unsigned int rank; /* the highest is left out first; 0: never */
};

static const struct column columns[TR_TOP_COLUMNS] = {
        [TR_TOP_NAME] = { "NAME", 'n', true, 8, 0 },    [TR_TOP_ACTOR] = { "ACTOR", 'a', true, 8, 7 },
        [TR_TOP_STATE] = { "STATE", 's', true, 8, 1 },  [TR_TOP_MAILBOX] = { "MAILBOX", 'm', false, 8, 4 },
        [TR_TOP_RATE] = { "MSGS/S", 'r', false, 7, 3 }, [TR_TOP_CPU] = { "CPU%", 'c', false, 6, 2 },
        [TR_TOP_HEAP] = { "HEAP", 'h', false, 6, 5 },   [TR_TOP_HANDLER] = { "HANDLER", 'd', true, 8, 6 },
};

static const char keys[] =
        "q quit   sort by: n name  a actor  s state  m mailbox  r msgs/s  c cpu  h heap  d handler   "
        "the same again: reversed";

static SCREEN *screen;

bool tr_screen_open(void) {
        const char *type = getenv("TERM");

        /* asked here, because newterm() takes a terminal on whose cursor cannot be moved, and leaks where it takes none */
        if (!type || tgetent(NULL, type) != 1 || !tgetstr("cm", NULL))
                return false;
        setlocale(LC_CTYPE, "");
        screen = newterm(type, stdout, stdin);
        if (!screen)
                return false;
        cbreak();
        noecho();
        nonl();
        nodelay(stdscr, TRUE);
        keypad(stdscr, TRUE);
        set_escdelay(ESCAPE_MS);
        curs_set(0);
        return true;
}

void tr_screen_close(void) {
        endwin();
        delscreen(screen);
        screen = NULL;
}

int tr_screen_key(void) {
        int key = getch();

        switch (key) {
        case ERR:
                return TR_KEY_NONE;
        case KEY_RESIZE:
                return TR_KEY_RESIZED;
        case KEY_UP:
                return TR_KEY_UP;
        case KEY_DOWN:
                return TR_KEY_DOWN;
        case KEY_PPAGE:
                return TR_KEY_PAGE_UP;
        case KEY_NPAGE:
                return TR_KEY_PAGE_DOWN;
        case KEY_HOME:
                return TR_KEY_HOME;
        case KEY_END:
                return TR_KEY_END;
        default:
                return key < 0x100 ? key : TR_KEY_OTHER;
        }
}

enum tr_top_column tr_screen_column_of(int key) {
        enum tr_top_column column = 0;

        while (column < TR_TOP_COLUMNS && columns[column].key != key)
                column++;
        return column;
}

void tr_screen_forget(void) {
        clearok(curscr, TRUE);
}

size_t tr_screen_rows(void) {
        return LINES > LINES_ABOVE ? LINES - LINES_ABOVE : 0;
}

/* One character as this terminal can show it, and how many bytes of the text it took. */
static wchar_t next_character(const char *text, size_t *ret_len) {
        mbstate_t state = { 0 };
        wchar_t character;
        size_t len = mbrtowc(&character, text, MB_CUR_MAX, &state);

        *ret_len = 1;
        if (len == 0 || len > MB_CUR_MAX) { /* the locale has it not; UTF-8 it is */
                while ((text[*ret_len] & 0xc0) == 0x80)
                        ++*ret_len;
                return L'?';
        }
        *ret_len = len;
        return wcwidth(character) > 0 ? character : L'?';
}

static int width_of(const char *text) {
        int width = 0;
        size_t len;

        for (; *text; text += len)
                width += wcwidth(next_character(text, &len));
        return width;
}

/* At the cursor, in exactly so many columns: cut, or filled up on one side. */
static void put(const char *text, int width, bool is_to_the_right) {
        int used = width_of(text), left = width;
        bool is_cut = used > width;
        size_t len;

        if (is_to_the_right && !is_cut)
                printw("%*s", width - used, "");
        for (; *text; text += len) {
                wchar_t character[2] = { next_character(text, &len) };
                int columns_taken = wcwidth(*character);

                if (columns_taken > left - is_cut)
                        break;
                addwstr(character);
                left -= columns_taken;
        }
        if (is_cut && left > 0) {
                addch('~');
                left--;
        }
        if (!is_to_the_right || is_cut)
                printw("%*s", left, "");
}

static void put_line(int y, const char *text) {
        if (y >= LINES)
                return;
        move(y, 0);
        /* ncurses cannot write in the last column of the last line without going on to the next */
        put(text, y + 1 == LINES ? COLS - 1 : COLS, false);
}

/* A number with at most five characters, by 1000. "-": not known. */
static void number_text(double number, char ret_text[static 32]) {
        static const char units[] = " kMGTP";
        size_t unit = 0;

        if (number < 0) {
                strcpy(ret_text, "-");
                return;
        }
        while (number >= 99999.5 && units[unit + 1]) {
                number /= 1000;
                unit++;
        }
        snprintf(ret_text, 32, unit ? "%.0f%c" : number < 9.95 ? "%.1f" : "%.0f", number, units[unit]);
}

static const char *cell_text(const struct tr_top_row *row, enum tr_top_column column, char scratch[static 32]) {
        switch (column) {
        case TR_TOP_NAME:
                return row->name;
        case TR_TOP_ACTOR:
                return row->actor;
        case TR_TOP_STATE:
                return row->state;
        case TR_TOP_HANDLER:
                return *row->handler ? row->handler : "-";
        case TR_TOP_MAILBOX:
                snprintf(scratch, 32, "%llu", (unsigned long long)row->mailbox);
                return scratch;
        case TR_TOP_RATE:
                number_text(row->rate, scratch);
                return scratch;
        case TR_TOP_CPU:
                number_text(row->cpu_percent, scratch);
                return scratch;
        default:
                tr_bytes_text(row->heap_bytes, scratch);
                return scratch;
        }
}

/* How wide each column is; 0: left out. */
static void lay_out(const struct tr_top_view *view, int widths[static TR_TOP_COLUMNS]) {
        int spare = COLS + GAP;

        for (size_t i = 0; i < TR_TOP_COLUMNS; i++) {
                widths[i] = columns[i].width;
                spare -= widths[i] + GAP;
        }
        for (unsigned int rank = TR_TOP_COLUMNS - 1; rank && spare < 0; rank--)
                for (size_t i = 0; i < TR_TOP_COLUMNS; i++)
                        if (columns[i].rank == rank) {
                                spare += widths[i] + GAP;
                                widths[i] = 0;
                        }
        if (spare < 0)
                widths[TR_TOP_NAME] = COLS;
        for (size_t i = 0; i < TR_TOP_COLUMNS && spare > 0; i++) {
                int wanted = widths[i];

                if (!widths[i] || !columns[i].is_text)
                        continue;
                for (size_t row = 0; row < view->rows.count; row++) {
                        char scratch[32];
                        int width = width_of(cell_text(&view->rows.rows[row], i, scratch));

                        if (width > wanted)
                                wanted = width;
                }
                if (wanted > widths[i] + spare)
                        wanted = widths[i] + spare;
                spare -= wanted - widths[i];
                widths[i] = wanted;
        }
}

static void draw_summary(const struct tr_top_view *view, size_t shown) {
        char rate_text[32], heap[32], line[512];
        double rate = 0, cpu = 0;
        uint64_t heap_bytes = 0;
        bool is_known = false;

        for (size_t i = 0; i < view->rows.count; i++) {
                const struct tr_top_row *row = &view->rows.rows[i];

                heap_bytes += row->heap_bytes;
                rate += row->rate > 0 ? row->rate : 0;
                cpu += row->cpu_percent > 0 ? row->cpu_percent : 0;
                is_known |= row->rate >= 0;
        }
        number_text(is_known ? rate : -1, rate_text);
        tr_bytes_text(heap_bytes, heap);
        if (!view->rows.count)
                snprintf(line, sizeof(line), "no actors   %s", view->socket);
        else
                snprintf(line, sizeof(line), "actors %zu-%zu of %zu   %s messages/s   %.0f%% CPU   %s heap   %s",
                         shown ? view->first + 1 : 0, view->first + shown, view->rows.count, rate_text, cpu, heap,
                         view->socket);
        put_line(0, line);
}

static void draw_titles(const struct tr_top_view *view, const int widths[static TR_TOP_COLUMNS]) {
        bool has_attributes = tr_table_has_colours();
        int x = 0;

        if (LINES < LINES_ABOVE)
                return;
        move(LINES_ABOVE - 1, 0);
        clrtoeol();
        for (enum tr_top_column i = 0; i < TR_TOP_COLUMNS; i++) {
                bool is_sorted = i == view->by;
                char title[32];

                if (!widths[i])
                        continue;
                /* the way it goes: numbers from the largest on, texts from a to z, or the other way */
                snprintf(title, sizeof(title), "%s%s", columns[i].title,
                         !is_sorted                                ? ""
                         : columns[i].is_text != view->is_reversed ? "^"
                                                                   : "v");
                move(LINES_ABOVE - 1, x);
                if (has_attributes)
                        attron(is_sorted ? A_REVERSE : A_BOLD);
                put(title, widths[i], !columns[i].is_text);
                attrset(A_NORMAL);
                x += widths[i] + GAP;
        }
}

static void draw_row(const struct tr_top_row *row, int y, const int widths[static TR_TOP_COLUMNS]) {
        int x = 0;

        move(y, 0);
        clrtoeol();
        for (enum tr_top_column i = 0; i < TR_TOP_COLUMNS; i++) {
                char scratch[32];

                if (!widths[i])
                        continue;
                move(y, x);
                put(cell_text(row, i, scratch), x + widths[i] >= COLS ? COLS - 1 - x : widths[i], !columns[i].is_text);
                x += widths[i] + GAP;
        }
}

void tr_screen_draw(struct tr_top_view *view) {
        size_t room = tr_screen_rows(), shown;
        int widths[TR_TOP_COLUMNS];

        if (view->first + room > view->rows.count)
                view->first = view->rows.count > room ? view->rows.count - room : 0;
        shown = view->rows.count - view->first < room ? view->rows.count - view->first : room;
        erase();
        lay_out(view, widths);
        draw_summary(view, shown);
        put_line(1, keys);
        draw_titles(view, widths);
        for (size_t i = 0; i < shown; i++)
                draw_row(&view->rows.rows[view->first + i], LINES_ABOVE + i, widths);
        refresh();
}
