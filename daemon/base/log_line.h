/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_BASE_LOG_LINE_H
#define TR_BASE_LOG_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "daemon/base/log.h"

/*
 * One line of the log, and its forms. log.c decides when and where it is written; nothing here keeps state or
 * allocates.
 */
struct tr_log_line {
        enum tr_log_level level;
        struct timespec when; /* since 1970 */
        struct tr_log_context context;
        const char *text; /* may have line breaks and anything else in it */
        size_t len;
};

/*
 * Each writes the line with its line break into the buffer and answers how many bytes that are; what does not fit is
 * cut. size is at least TR_LOG_RENDER_MIN, and each text of the context has at most TR_LOG_CONTEXT_MAX bytes, so that
 * only the line's own text is ever cut. What others wrote cannot forge a line or reach the terminal as a control
 * sequence.
 */
#define TR_LOG_CONTEXT_MAX 256
#define TR_LOG_RENDER_MIN 8192

/* For people: time of day, level, who, text; further lines of the text are indented. */
size_t tr_log_render_text(const struct tr_log_line *line, char *buffer, size_t size);
/* One JSON object on one line. */
size_t tr_log_render_json(const struct tr_log_line *line, char *buffer, size_t size);
/* For a service manager that reads standard error: "<PRIORITY>" before each line, no time. */
size_t tr_log_render_prefixed(const struct tr_log_line *line, char *buffer, size_t size);

/* How long its text is without line breaks at its end. */
size_t tr_log_line_len(const struct tr_log_line *line);
/* syslog's number for a level. */
int tr_log_priority(enum tr_log_level level);

/* Sends the line with its fields to the journal. False where it was not taken (no journal, or built without
 * libsystemd). */
bool tr_log_send_journal(const struct tr_log_line *line);

#endif
