/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_BASE_LOG_H
#define TR_BASE_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"

/*
 * The daemon's log. Any thread writes; a line goes through a bounded queue to
 * one writer thread, so that neither an actor nor the loop ever waits for
 * whoever reads the log. What the queue cannot take is dropped and counted,
 * and the count is logged when there is room again.
 *
 * Before tr_log_start() and after tr_log_stop() lines go straight to standard error.
 */

enum tr_log_level {
        TR_LOG_ERROR,
        TR_LOG_WARNING,
        TR_LOG_INFO,
        TR_LOG_DEBUG,
};

enum tr_log_format {
        TR_LOG_AUTO, /* journal where standard error is the journal's (JOURNAL_STREAM), text on a terminal, else json */
        TR_LOG_TEXT,
        TR_LOG_JSON,
        TR_LOG_JOURNAL,
};

/* What a line is about, beside its text. Every member may be NULL or unset. */
struct tr_log_context {
        const char *actor;  /* an actor's label */
        const char *handle; /* the first eight digits of a handle */
        const char *trace;
        bool has_owner; /* of the actor. It is not written, but says whom the line concerns */
        uint32_t owner_uid;
        bool has_peer;
        uint32_t peer_uid;
        int32_t peer_pid;
};

struct tr_log_line; /* daemon/base/log_line.h */

const char *tr_log_level_text(enum tr_log_level level);
bool tr_log_level_parse(const char *text, size_t len, enum tr_log_level *ret_level);
bool tr_log_format_parse(const char *text, size_t len, enum tr_log_format *ret_format);

/* Bytes of a line's text; a longer one is cut. */
#define TR_LOG_LINE_MAX (16u << 10)

/* Starts the writer thread. 0 or a negative errno. Main thread. */
TR_MUST_CHECK int tr_log_start(void);
/* Writes what is queued and ends the writer thread. Main thread. */
void tr_log_stop(void);

void tr_log_set_level(enum tr_log_level level);
void tr_log_set_format(enum tr_log_format format);
bool tr_log_enabled(enum tr_log_level level);
/* Lines dropped since the start. */
uint64_t tr_log_dropped(void);

void tr_log(enum tr_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tr_log_with(enum tr_log_level level, const struct tr_log_context *context, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
void tr_logv_with(enum tr_log_level level, const struct tr_log_context *context, const char *format, va_list arguments)
        __attribute__((format(printf, 3, 0)));

/* Called with every line, from any thread, as it is logged (daemon/watch), perhaps under a lock; it must not log and not
 * wait. NULL: nobody. Main thread, while no other logs. */
void tr_log_set_hook(void (*hook)(void *userdata, const struct tr_log_line *line), void *userdata);

#endif
