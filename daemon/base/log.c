/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: who writes a line copies it into a ring of bytes and goes on; one thread takes lines out and writes them to
 * standard error or the journal. The ring is one allocation of a fixed size, so a line costs no memory when memory is
 * what it complains about; a line that does not fit is dropped and counted, and the writer tells the count in its
 * place.
 *
 * Where there is no writer thread (before the start, after the stop, when no thread could be had) a line is written by
 * whoever logs it. `output` is held by whoever writes; where the writer is stuck at the stop, because nobody reads what
 * it writes, it keeps that for good, and later lines are dropped: an exit never waits for a reader.
 */
#include "config.h"

#include "daemon/base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/lock.h"
#include "daemon/base/log_line.h"
#include "daemon/base/thread.h"

#define RING_BYTES (512u << 10)
/* JSON makes at most six bytes of one. */
#define RENDERED_BYTES (6 * TR_LOG_LINE_MAX + TR_LOG_RENDER_MIN)
/* What most lines fit in, on the stack of an actor that may be deep in its own code. */
#define SHORT_LINE 1024
/* How long the stop waits for a writer that somebody does not read. */
#define STOP_WAIT_S 2

/* A line in the ring: this, then the four texts with a NUL each. */
struct record {
        struct timespec when;
        uint32_t text_len;
        uint16_t lens[3]; /* of actor, handle, trace, their NUL counted; 0: there is none */
        uint8_t level;
        bool has_peer;
        uint32_t peer_uid;
        int32_t peer_pid;
};

#define RECORD_MAX (sizeof(struct record) + 3 * (TR_LOG_CONTEXT_MAX + 1) + TR_LOG_LINE_MAX + 1)

static struct {
        struct tr_lock lock;
        pthread_cond_t wake;
        char *ring TR_GUARDED_BY(lock);   /* NULL: no writer thread */
        size_t begin TR_GUARDED_BY(lock); /* bytes ever taken out */
        size_t end TR_GUARDED_BY(lock);   /* bytes ever put in */
        bool stopping TR_GUARDED_BY(lock);
        uint64_t unreported TR_GUARDED_BY(lock);
        pthread_t writer; /* main thread's */

        struct tr_lock output;
        char rendered[RENDERED_BYTES] TR_GUARDED_BY(output);

        _Atomic uint32_t level;
        _Atomic uint32_t format;
        _Atomic uint64_t dropped;
        _Atomic bool abandoned; /* the writer is stuck for good */
        /* Set while no other thread logs. */
        void (*hook)(void *userdata, const struct tr_log_line *line);
        void *hook_userdata;
} log_state = {
        .lock = TR_LOCK_INIT,
        .wake = PTHREAD_COND_INITIALIZER,
        .output = TR_LOCK_INIT,
        .level = TR_LOG_INFO,
        .format = TR_LOG_AUTO,
};

static const char *const level_texts[] = {
        [TR_LOG_ERROR] = "error",
        [TR_LOG_WARNING] = "warning",
        [TR_LOG_INFO] = "info",
        [TR_LOG_DEBUG] = "debug",
};

static const char *const format_texts[] = {
        [TR_LOG_AUTO] = "auto",
        [TR_LOG_TEXT] = "text",
        [TR_LOG_JSON] = "json",
        [TR_LOG_JOURNAL] = "journal",
};

static bool find_text(const char *const *texts, size_t count, const char *text, size_t len, size_t *ret_at) {
        for (size_t i = 0; i < count; i++)
                if (strlen(texts[i]) == len && memcmp(texts[i], text, len) == 0) {
                        *ret_at = i;
                        return true;
                }
        return false;
}

const char *tr_log_level_text(enum tr_log_level level) {
        return level_texts[level];
}

bool tr_log_level_parse(const char *text, size_t len, enum tr_log_level *ret_level) {
        size_t at;

        if (!find_text(level_texts, sizeof(level_texts) / sizeof(*level_texts), text, len, &at))
                return false;
        *ret_level = (enum tr_log_level)at;
        return true;
}

bool tr_log_format_parse(const char *text, size_t len, enum tr_log_format *ret_format) {
        size_t at;

        if (!find_text(format_texts, sizeof(format_texts) / sizeof(*format_texts), text, len, &at))
                return false;
        *ret_format = (enum tr_log_format)at;
        return true;
}

/* Whether standard error is the journal's own stream: the service manager says which file that is. */
static bool stderr_is_journal(void) {
        const char *text = getenv("JOURNAL_STREAM");
        char own[64];
        struct stat status;

        if (!text || fstat(STDERR_FILENO, &status) < 0)
                return false;
        snprintf(own, sizeof(own), "%llu:%llu", (unsigned long long)status.st_dev, (unsigned long long)status.st_ino);
        return strcmp(text, own) == 0;
}

static enum tr_log_format resolve_format(enum tr_log_format format) {
        if (format != TR_LOG_AUTO)
                return format;
        if (stderr_is_journal())
                return TR_LOG_JOURNAL;
        return isatty(STDERR_FILENO) ? TR_LOG_TEXT : TR_LOG_JSON;
}

/* The whole line in one write where the kernel takes it so, so that lines of several processes do not mix. */
static void write_stderr(const char *data, size_t len) {
        while (len > 0) {
                ssize_t done = write(STDERR_FILENO, data, len);

                if (done < 0) {
                        struct pollfd ready = { .fd = STDERR_FILENO, .events = POLLOUT };

                        if (errno == EINTR)
                                continue;
                        /* someone we share it with made it non-blocking */
                        if (errno == EAGAIN && (poll(&ready, 1, -1) > 0 || errno == EINTR))
                                continue;
                        return;
                }
                data += done;
                len -= (size_t)done;
        }
}

static void write_line(const struct tr_log_line *line) TR_REQUIRES(log_state.output) {
        char *rendered = log_state.rendered;
        size_t len;

        switch (resolve_format((enum tr_log_format)atomic_load_explicit(&log_state.format, memory_order_relaxed))) {
        case TR_LOG_JSON:
                len = tr_log_render_json(line, rendered, RENDERED_BYTES);
                break;
        case TR_LOG_JOURNAL:
                if (tr_log_send_journal(line))
                        return;
                len = tr_log_render_prefixed(line, rendered, RENDERED_BYTES);
                break;
        default:
                len = tr_log_render_text(line, rendered, RENDERED_BYTES);
                break;
        }
        write_stderr(rendered, len);
}

static void copy_in(const void *data, size_t len) TR_REQUIRES(log_state.lock) {
        size_t at = log_state.end % RING_BYTES;
        size_t first = len < RING_BYTES - at ? len : RING_BYTES - at;

        memcpy(log_state.ring + at, data, first);
        memcpy(log_state.ring, (const char *)data + first, len - first);
        log_state.end += len;
}

static void copy_out(void *data, size_t len) TR_REQUIRES(log_state.lock) {
        size_t at = log_state.begin % RING_BYTES;
        size_t first = len < RING_BYTES - at ? len : RING_BYTES - at;

        memcpy(data, log_state.ring + at, first);
        memcpy((char *)data + first, log_state.ring, len - first);
        log_state.begin += len;
}

static uint16_t context_len(const char *text) {
        return text ? (uint16_t)(strnlen(text, TR_LOG_CONTEXT_MAX) + 1) : 0;
}

static void copy_in_text(const char *text, size_t len_with_nul) TR_REQUIRES(log_state.lock) {
        if (len_with_nul == 0)
                return;
        copy_in(text, len_with_nul - 1);
        copy_in("", 1);
}

/* False where there is no writer. */
static bool enqueue(const struct tr_log_line *line) {
        const struct tr_log_context *context = &line->context;
        struct record record = {
                .when = line->when,
                .text_len = (uint32_t)line->len,
                .lens = { context_len(context->actor), context_len(context->handle), context_len(context->trace) },
                .level = (uint8_t)line->level,
                .has_peer = context->has_peer,
                .peer_uid = context->peer_uid,
                .peer_pid = context->peer_pid,
        };
        size_t bytes = sizeof(record) + record.lens[0] + record.lens[1] + record.lens[2] + line->len + 1;
        bool has_writer;

        tr_lock_acquire(&log_state.lock);
        has_writer = log_state.ring && !log_state.stopping;
        if (has_writer && bytes > RING_BYTES - (log_state.end - log_state.begin)) {
                log_state.unreported++;
                atomic_fetch_add_explicit(&log_state.dropped, 1, memory_order_relaxed);
        } else if (has_writer) {
                bool was_empty = log_state.end == log_state.begin;

                copy_in(&record, sizeof(record));
                copy_in_text(context->actor, record.lens[0]);
                copy_in_text(context->handle, record.lens[1]);
                copy_in_text(context->trace, record.lens[2]);
                copy_in_text(line->text, line->len + 1);
                if (was_empty)
                        pthread_cond_signal(&log_state.wake);
        }
        tr_lock_release(&log_state.lock);
        return has_writer;
}

static const char *next_text(char **at, size_t len_with_nul) {
        char *text = *at;

        *at += len_with_nul;
        return len_with_nul > 0 ? text : NULL;
}

/* Takes the oldest line out of the ring; its texts are in `room`. */
static struct tr_log_line dequeue(char room[static RECORD_MAX]) TR_REQUIRES(log_state.lock) {
        struct record record;
        struct tr_log_line line;
        char *at = room;

        copy_out(&record, sizeof(record));
        copy_out(room, (size_t)record.lens[0] + record.lens[1] + record.lens[2] + record.text_len + 1);
        line = (struct tr_log_line){
                .level = (enum tr_log_level)record.level,
                .when = record.when,
                .context = { .has_peer = record.has_peer, .peer_uid = record.peer_uid, .peer_pid = record.peer_pid },
                .len = record.text_len,
        };
        line.context.actor = next_text(&at, record.lens[0]);
        line.context.handle = next_text(&at, record.lens[1]);
        line.context.trace = next_text(&at, record.lens[2]);
        line.text = at;
        return line;
}

static void write_dropped(uint64_t count) TR_REQUIRES(log_state.output) {
        char text[80];
        struct tr_log_line line = { .level = TR_LOG_WARNING, .text = text };

        clock_gettime(CLOCK_REALTIME, &line.when);
        line.len =
                (size_t)snprintf(text, sizeof(text), "%llu lines of the log were dropped", (unsigned long long)count);
        write_line(&line);
}

static void *writer_main(void *userdata) {
        char *room = userdata;

        tr_thread_enter(TR_THREAD_LOG, "log");
        for (;;) {
                struct tr_log_line line;
                uint64_t unreported;

                tr_lock_acquire(&log_state.lock);
                while (log_state.begin == log_state.end && !log_state.stopping)
                        pthread_cond_wait(&log_state.wake, &log_state.lock.mutex);
                if (log_state.begin == log_state.end) {
                        tr_lock_release(&log_state.lock);
                        return NULL;
                }
                line = dequeue(room);
                unreported = log_state.unreported;
                log_state.unreported = 0;
                tr_lock_release(&log_state.lock);

                tr_lock_acquire(&log_state.output);
                write_line(&line);
                if (unreported > 0)
                        write_dropped(unreported);
                tr_lock_release(&log_state.output);
        }
}

int tr_log_start(void) {
        TR_AUTO_FREE char *memory = malloc(RING_BYTES + RECORD_MAX);
        sigset_t all, before;
        int r;

        if (!memory)
                return tr_error_origin(-ENOMEM);
        tr_lock_acquire(&log_state.lock);
        log_state.ring = memory;
        log_state.begin = log_state.end = 0;
        log_state.stopping = false;
        tr_lock_release(&log_state.lock);

        /* signals are the loop thread's */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&log_state.writer, NULL, writer_main, memory + RING_BYTES);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r != 0) {
                tr_lock_acquire(&log_state.lock);
                log_state.ring = NULL;
                tr_lock_release(&log_state.lock);
                return tr_error_origin(-r);
        }
        memory = NULL;
        return 0;
}

void tr_log_stop(void) {
        struct timespec until;
        char *memory;

        tr_lock_acquire(&log_state.lock);
        memory = log_state.ring;
        log_state.stopping = true;
        pthread_cond_signal(&log_state.wake);
        tr_lock_release(&log_state.lock);
        if (!memory)
                return;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += STOP_WAIT_S;
        if (pthread_timedjoin_np(log_state.writer, NULL, &until) != 0) {
                /* it still uses the ring and the output: both stay as they are until the process ends */
                atomic_store_explicit(&log_state.abandoned, true, memory_order_relaxed);
                pthread_detach(log_state.writer);
                return;
        }
        tr_lock_acquire(&log_state.lock);
        log_state.ring = NULL;
        tr_lock_release(&log_state.lock);
        free(memory);
}

void tr_log_set_level(enum tr_log_level level) {
        atomic_store_explicit(&log_state.level, level, memory_order_relaxed);
}

void tr_log_set_format(enum tr_log_format format) {
        atomic_store_explicit(&log_state.format, format, memory_order_relaxed);
}

bool tr_log_enabled(enum tr_log_level level) {
        return (uint32_t)level <= atomic_load_explicit(&log_state.level, memory_order_relaxed);
}

uint64_t tr_log_dropped(void) {
        return atomic_load_explicit(&log_state.dropped, memory_order_relaxed);
}

void tr_log_set_hook(void (*hook)(void *userdata, const struct tr_log_line *line), void *userdata) {
        log_state.hook = hook;
        log_state.hook_userdata = userdata;
}

/* `text` is NUL-terminated. */
static void emit(enum tr_log_level level, const struct tr_log_context *context, const char *text, size_t len) {
        struct tr_log_line line = { .level = level, .text = text, .len = len };

        if (context)
                line.context = *context;
        clock_gettime(CLOCK_REALTIME, &line.when);
        if (log_state.hook)
                log_state.hook(log_state.hook_userdata, &line);
        if (enqueue(&line) || atomic_load_explicit(&log_state.abandoned, memory_order_relaxed))
                return;
        tr_lock_acquire(&log_state.output);
        write_line(&line);
        tr_lock_release(&log_state.output);
}

void tr_logv_with(enum tr_log_level level, const struct tr_log_context *context, const char *format,
                  va_list arguments) {
        char brief[SHORT_LINE];
        TR_AUTO_FREE char *whole = NULL;
        va_list again;
        size_t len;
        int needed;

        if (!tr_log_enabled(level))
                return;
        va_copy(again, arguments);
        needed = vsnprintf(brief, sizeof(brief), format, arguments);
        len = needed < 0 ? 0 : (size_t)needed;
        if (len > TR_LOG_LINE_MAX)
                len = TR_LOG_LINE_MAX;
        if (len >= sizeof(brief))
                whole = malloc(len + 1);
        if (whole)
                vsnprintf(whole, len + 1, format, again);
        else if (len >= sizeof(brief))
                len = sizeof(brief) - 1;
        va_end(again);
        emit(level, context, whole ? whole : brief, len);
}

void tr_log_with(enum tr_log_level level, const struct tr_log_context *context, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        tr_logv_with(level, context, format, arguments);
        va_end(arguments);
}

void tr_log(enum tr_log_level level, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        tr_logv_with(level, NULL, format, arguments);
        va_end(arguments);
}
