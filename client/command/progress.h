/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_PROGRESS_H
#define TR_COMMAND_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * A count of lines, or the like, on standard error, where that is a terminal and the work takes longer than a second. Zeroed is
 * ready.
 */
struct tr_progress {
        bool has_begun;
        bool is_terminal;
        bool is_shown;
        struct timespec next; /* when it may be written again */
};

void tr_progress_update(struct tr_progress *progress, uint64_t count, const char *of_what);
/* Takes it off the screen: before anything else is written, and at the end. */
void tr_progress_clear(struct tr_progress *progress);

#endif
