/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread sleeps until a span has ended, and then for GATHER_NS more, so that a busy daemon wakes it a hundred times in a second
 * and not for each call.
 *
 * A line is written whole or not at all: what a full disk took of one is cut off again.
 */
#include "config.h"

#include "daemon/watch/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/lock.h"
#include "daemon/base/log.h"
#include "daemon/base/thread.h"
#include "daemon/io/traces.h"
#include "daemon/watch/trace_line.h"

#define GATHER_NS (10 * TR_NS_PER_MS)
/* Read and written in one go. */
#define BATCH 32
/* How often the log speaks of what was not written. */
#define TELL_NS (10 * TR_NS_PER_S)
/* How long the stop waits for a file that does not take what is written. */
#define STOP_WAIT_S 2

struct tr_trace_file {
        struct tr_traces *traces;
        _Atomic bool asleep; /* the thread is, or is about to be, and has to be woken */
        _Atomic uint64_t dropped;

        struct tr_lock lock; /* that of the traces is acquired under it, and nothing else */
        pthread_cond_t wake;
        int next_fd TR_GUARDED_BY(lock); /* instead of the one that is open, where has_next */
        bool has_next TR_GUARDED_BY(lock);
        uint64_t from TR_GUARDED_BY(lock); /* the first span for it, where none is open */
        bool stopping TR_GUARDED_BY(lock);

        /* The loop thread's. */
        bool has_thread;
        pthread_t thread;

        /* The thread's. */
        int fd;        /* -1: none */
        uint64_t next; /* the number of the span that is written next */
        int write_errno; /* why what was dropped last could not be written; 0: it was too late */
        uint64_t told; /* of the dropped ones */
        uint64_t told_ns;
        struct tr_span_record records[BATCH];
        char lines[BATCH * TR_TRACE_LINE_MAX];
};

int tr_trace_file_new(struct tr_traces *traces, struct tr_trace_file **ret_file) {
        struct tr_trace_file *file = calloc(1, sizeof(*file));
        pthread_condattr_t attributes;

        if (!file)
                return tr_error_origin(-ENOMEM);
        file->traces = traces;
        file->fd = -1;
        tr_lock_init(&file->lock);
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&file->wake, &attributes);
        pthread_condattr_destroy(&attributes);
        *ret_file = file;
        return 0;
}

void tr_trace_file_free(struct tr_trace_file *file) {
        if (!file)
                return;
        pthread_cond_destroy(&file->wake);
        tr_lock_deinit(&file->lock);
        free(file);
}

const char *tr_trace_file_open(const char *path, int *ret_fd) {
        /* a pipe that nobody reads is not waited for */
        int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);
        struct stat status;

        if (fd < 0)
                return strerrordesc_np(errno);
        if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
                close(fd);
                return "is no regular file";
        }
        *ret_fd = fd;
        return NULL;
}

uint64_t tr_trace_file_dropped(struct tr_trace_file *file) {
        return atomic_load_explicit(&file->dropped, memory_order_relaxed);
}

void tr_trace_file_notice(struct tr_trace_file *file) {
        /* relaxed: the lock of the traces, which both have held, orders this behind what the thread saw of them last */
        if (!atomic_load_explicit(&file->asleep, memory_order_relaxed))
                return;
        tr_lock_acquire(&file->lock);
        pthread_cond_signal(&file->wake);
        tr_lock_release(&file->lock);
}

/* Writing */

static void drop(struct tr_trace_file *file, uint64_t count, int write_errno) {
        if (count == 0)
                return;
        file->write_errno = write_errno;
        atomic_fetch_add_explicit(&file->dropped, count, memory_order_relaxed);
}

/* Answers how many of the bytes were written; where that is not all, *ret_errno says why. */
static size_t write_all(int fd, const char *data, size_t len, int *ret_errno) {
        size_t done = 0;

        while (done < len) {
                ssize_t n = write(fd, data + done, len - done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0) {
                        *ret_errno = n < 0 ? errno : ENOSPC;
                        break;
                }
                done += (size_t)n;
        }
        return done;
}

/* Takes back what was written of a line that was not written whole. */
static void cut_off(int fd, size_t bytes) {
        off_t end = bytes ? lseek(fd, 0, SEEK_END) : 0;

        if (end >= (off_t)bytes && bytes && ftruncate(fd, end - (off_t)bytes) < 0)
                tr_error_origin(-errno);
}

static void write_batch(struct tr_trace_file *file, size_t count) {
        size_t ends[BATCH], len = 0, done, whole = 0;
        int write_errno = 0;

        for (size_t i = 0; i < count; i++) {
                len += tr_trace_line(&file->records[i], file->lines + len);
                ends[i] = len;
        }
        done = write_all(file->fd, file->lines, len, &write_errno);
        while (whole < count && ends[whole] <= done)
                whole++;
        cut_off(file->fd, done - (whole > 0 ? ends[whole - 1] : 0));
        drop(file, count - whole, write_errno);
}

static void tell_dropped(struct tr_trace_file *file, bool at_last) {
        uint64_t dropped = tr_trace_file_dropped(file), now_ns = tr_clock_ns();

        if (dropped == file->told || (!at_last && file->told_ns && now_ns - file->told_ns < TELL_NS))
                return;
        tr_log(TR_LOG_WARNING, "%llu spans were not written to trace.file: %s",
               (unsigned long long)(dropped - file->told),
               file->write_errno ? strerrordesc_np(file->write_errno) : "more ended than it could take");
        file->told = dropped;
        file->told_ns = now_ns;
}

/* All that has ended. */
static void write_spans(struct tr_trace_file *file) {
        size_t count;

        while ((count = tr_traces_read(file->traces, file->next, file->records, BATCH)) > 0) {
                drop(file, file->records[0].number - file->next, 0);
                file->next = file->records[count - 1].number + 1;
                write_batch(file, count);
        }
}

static bool has_work_locked(struct tr_trace_file *file) TR_REQUIRES(file->lock) {
        return file->has_next || file->stopping || (file->fd >= 0 && tr_traces_last(file->traces) >= file->next);
}

static void sleep_locked(struct tr_trace_file *file) TR_REQUIRES(file->lock) {
        /* before the look at the traces, so that whoever puts a span in behind that look sees it */
        atomic_store_explicit(&file->asleep, true, memory_order_relaxed);
        while (!has_work_locked(file))
                pthread_cond_wait(&file->wake, &file->lock.mutex);
        atomic_store_explicit(&file->asleep, false, memory_order_relaxed);
}

static void gather_locked(struct tr_trace_file *file) TR_REQUIRES(file->lock) {
        struct timespec until;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += GATHER_NS;
        if (until.tv_nsec >= (long)TR_NS_PER_S) {
                until.tv_nsec -= (long)TR_NS_PER_S;
                until.tv_sec++;
        }
        while (!file->has_next && !file->stopping &&
               pthread_cond_timedwait(&file->wake, &file->lock.mutex, &until) == 0)
                ;
}

static void *thread_main(void *userdata) {
        struct tr_trace_file *file = userdata;
        bool stopping = false;

        tr_thread_enter(TR_THREAD_OTHER, "trace");
        while (!stopping) {
                int previous = -1;

                tr_lock_acquire(&file->lock);
                sleep_locked(file);
                gather_locked(file);
                stopping = file->stopping;
                if (file->has_next) {
                        previous = file->fd;
                        if (file->fd < 0)
                                file->next = file->from;
                        file->fd = file->next_fd;
                        file->has_next = false;
                }
                tr_lock_release(&file->lock);
                if (previous >= 0)
                        close(previous);
                if (file->fd >= 0)
                        write_spans(file);
                tell_dropped(file, stopping);
        }
        if (file->fd >= 0)
                close(file->fd);
        return NULL;
}

/* Starting and stopping */

static int start_thread(struct tr_trace_file *file) {
        sigset_t all, before;
        int r;

        /* signals are the loop thread's */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&file->thread, NULL, thread_main, file);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        file->has_thread = r == 0;
        return r == 0 ? 0 : tr_error_origin(-r);
}

int tr_trace_file_set(struct tr_trace_file *file, int take_fd) {
        int replaced = -1, r = 0;

        if (take_fd < 0 && !file->has_thread)
                return 0;
        tr_lock_acquire(&file->lock);
        if (file->has_next)
                replaced = file->next_fd;
        file->next_fd = take_fd;
        file->has_next = true;
        file->from = tr_traces_last(file->traces) + 1;
        pthread_cond_signal(&file->wake);
        tr_lock_release(&file->lock);
        if (replaced >= 0)
                close(replaced);
        if (!file->has_thread)
                r = start_thread(file);
        if (r < 0) {
                tr_lock_acquire(&file->lock);
                file->has_next = false;
                tr_lock_release(&file->lock);
                close(take_fd);
        }
        return tr_error_fold(r);
}

bool tr_trace_file_stop(struct tr_trace_file *file) {
        struct timespec until;

        if (!file || !file->has_thread)
                return true;
        tr_lock_acquire(&file->lock);
        file->stopping = true;
        pthread_cond_signal(&file->wake);
        tr_lock_release(&file->lock);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += STOP_WAIT_S;
        if (pthread_timedjoin_np(file->thread, NULL, &until) != 0) {
                tr_log(TR_LOG_WARNING, "trace.file does not take what is written to it: the last spans are not in it");
                return false;
        }
        file->has_thread = false;
        return true;
}
