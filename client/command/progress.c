/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_MS 1000
#define AGAIN_MS 200
#define BAR "########################"
#define BAR_WIDTH ((int)strlen(BAR))

static void set_next(struct tr_progress *progress, const struct timespec *now, long ms) {
        progress->next = *now;
        progress->next.tv_sec += ms / 1000;
        progress->next.tv_nsec += ms % 1000 * 1000000L;
        if (progress->next.tv_nsec >= 1000000000L) {
                progress->next.tv_nsec -= 1000000000L;
                progress->next.tv_sec++;
        }
}

void tr_progress_expect(struct tr_progress *progress, int fd) {
        struct stat file;
        off_t at;

        if (fstat(fd, &file) || !S_ISREG(file.st_mode) || (at = lseek(fd, 0, SEEK_CUR)) < 0 || at > file.st_size)
                return;
        progress->total = file.st_size - at;
}

/* How many of `whole` parts are done: rounded down, and of whole numbers, since 100 * 0.57 is less than 57. */
static int done_of(int whole, uint64_t bytes, uint64_t total) {
        /* it may have grown meanwhile; no file is so large that this overflows */
        return bytes < total ? (int)(bytes * (uint64_t)whole / total) : whole;
}

static void print_bar(uint64_t bytes, uint64_t total) {
        int full = done_of(BAR_WIDTH, bytes, total);

        fprintf(stderr, "[%.*s%*s] %3d%% ", full, BAR, BAR_WIDTH - full, "", done_of(100, bytes, total));
}

void tr_progress_update(struct tr_progress *progress, uint64_t count, const char *of_what, uint64_t bytes) {
        struct timespec now;

        if (progress->has_begun && !progress->is_terminal)
                return;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (!progress->has_begun) {
                progress->has_begun = true;
                progress->is_terminal = isatty(STDERR_FILENO);
                set_next(progress, &now, FIRST_MS);
        }
        if (now.tv_sec < progress->next.tv_sec ||
            (now.tv_sec == progress->next.tv_sec && now.tv_nsec < progress->next.tv_nsec))
                return;
        fputc('\r', stderr);
        if (progress->total)
                print_bar(bytes, progress->total);
        fprintf(stderr, "%" PRIu64 " %s", count, of_what);
        progress->is_shown = true;
        set_next(progress, &now, AGAIN_MS);
}

void tr_progress_clear(struct tr_progress *progress) {
        if (progress->is_shown)
                fputs("\r\033[K", stderr);
        progress->is_shown = false;
}

void tr_progress_make_way(struct tr_progress *progress) {
        if (progress->is_shown && isatty(STDOUT_FILENO))
                tr_progress_clear(progress);
}
