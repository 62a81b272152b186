/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal's native protocol, by libsystemd: a line goes as fields, so that `journalctl TROUPE_ACTOR=counter` works.
 * It is in a file of its own because it is all that the daemon wants from that library.
 */
#include "config.h"

#include "daemon/base/log_line.h"

#ifdef HAVE_LIBSYSTEMD

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#define JOURNAL_SOCKET "/run/systemd/journal/socket"
#define FIELDS_MAX 8
#define FIELD_SIZE (TR_LOG_CONTEXT_MAX + 32)

/* The fields but MESSAGE, which is as long as its line. */
struct fields {
        char text[FIELDS_MAX][FIELD_SIZE];
        struct iovec parts[FIELDS_MAX + 1];
        int count;
};

__attribute__((format(printf, 2, 3))) static void add(struct fields *fields, const char *format, ...) {
        char *text = fields->text[fields->count];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text, FIELD_SIZE, format, arguments);
        va_end(arguments);
        fields->parts[fields->count++] = (struct iovec){ text, strlen(text) };
}

static void add_context(struct fields *fields, const struct tr_log_context *context) {
        if (context->actor)
                add(fields, "TROUPE_ACTOR=%s", context->actor);
        if (context->handle)
                add(fields, "TROUPE_HANDLE=%s", context->handle);
        if (context->trace)
                add(fields, "TRACE_ID=%s", context->trace);
        if (context->has_peer) {
                add(fields, "TROUPE_PEER_UID=%" PRIu32, context->peer_uid);
                add(fields, "TROUPE_PEER_PID=%" PRId32, context->peer_pid);
        }
}

bool tr_log_send_journal(const struct tr_log_line *line) {
        static const char key[] = "MESSAGE=";
        char message[TR_LOG_LINE_MAX + sizeof(key)];
        struct fields fields = { .count = 0 };
        size_t len = line->len < TR_LOG_LINE_MAX ? line->len : TR_LOG_LINE_MAX;

        /* where there is no journal the library says that all is well */
        if (access(JOURNAL_SOCKET, W_OK) < 0)
                return false;
        add(&fields, "PRIORITY=%d", tr_log_priority(line->level));
        add(&fields, "SYSLOG_IDENTIFIER=trouped");
        add_context(&fields, &line->context);
        memcpy(message, key, sizeof(key) - 1);
        memcpy(message + sizeof(key) - 1, line->text, len);
        fields.parts[fields.count] = (struct iovec){ message, sizeof(key) - 1 + len };
        return sd_journal_sendv(fields.parts, fields.count + 1) >= 0;
}

#else

bool tr_log_send_journal(const struct tr_log_line *line) {
        return false;
}

#endif
