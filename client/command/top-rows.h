/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_TOP_ROWS_H
#define TR_COMMAND_TOP_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/troupe.h"

/*
 * What `troupe top` knows of the actors: a row for each, pools' workers too, from an answer of `list`; what is per second comes from the
 * answer before it. No terminal here.
 */

/* What the rows may be sorted by; also the columns of the screen, in their order. */
enum tr_top_column {
        TR_TOP_NAME,
        TR_TOP_ACTOR,
        TR_TOP_STATE,
        TR_TOP_MAILBOX,
        TR_TOP_RATE,
        TR_TOP_CPU,
        TR_TOP_HEAP,
        TR_TOP_HANDLER,
        TR_TOP_COLUMNS,
};

struct tr_top_row {
        /* Fit for a terminal. "" where there is none. */
        char *name; /* the published one, a worker's with its pool's, else the label, else the beginning of the handle */
        char *actor;
        char *state;
        char *handler; /* the one that runs */

        char handle[TROUPE_HANDLE_SIZE];
        uint64_t mailbox;
        uint64_t heap_bytes;
        uint64_t messages;
        uint64_t cpu_ms;
        double rate;        /* messages per second; negative: not known yet */
        double cpu_percent; /* of one CPU; the same */
};

struct tr_top_rows {
        struct tr_top_row *rows;
        size_t count;
        int64_t at_ms;
};

/* `before` is the answer before this one, whose order this changes, or is empty. 0, -EBADMSG, -ENOMEM. */
int tr_top_rows_read(struct tr_top_rows *ret_rows, const struct troupe_value *list, int64_t now_ms,
                     struct tr_top_rows *before);
void tr_top_rows_deinit(struct tr_top_rows *rows);

/* Texts from a to z and numbers from the largest on; what is alike by name. */
void tr_top_rows_sort(struct tr_top_rows *rows, enum tr_top_column by, bool is_reversed);

#endif
