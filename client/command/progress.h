/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_PROGRESS_H
#define TR_COMMAND_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * A count of lines, or the like, on standard error, where that is a terminal and the work takes longer than a second; with a bar
 * where it is known how much is to come. Zeroed is ready.
 */
struct tr_progress {
        bool has_begun;
        bool is_terminal;
        bool is_shown;
        uint64_t total;       /* bytes that are to come; 0: not known */
        struct timespec next; /* when it may be written again */
};

/* Before anything is read of it: what is to be done comes from there, and where that is a file it is known how much it is. */
void tr_progress_expect(struct tr_progress *progress, int fd);
/* So many are done, which are so many bytes of those to come. */
void tr_progress_update(struct tr_progress *progress, uint64_t count, const char *of_what, uint64_t bytes);
/* Takes it off the screen: before anything else is written there, and at the end. */
void tr_progress_clear(struct tr_progress *progress);
/* The same before something is written on standard output, which may be elsewhere. */
void tr_progress_make_way(struct tr_progress *progress);

#endif
