/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forms of a line of the log. Every form is built in the caller's buffer by an `out` that stops at its end, with
 * room kept for what must follow (a closing quote, brace and line break), so that a cut line is still a whole one.
 *
 * Text comes from anywhere (Lua, peers): control characters are escaped in every form, and bytes that are not UTF-8
 * become U+FFFD in JSON, which could not hold them otherwise.
 */
#include "daemon/base/log_line.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/json.h"
#include "proto/utf8.h"

/* Bytes kept for the end of a line. */
#define ROOM_FOR_END 4
/* The longest that one byte of text becomes: a line break with its prefix and indentation, or \u00XX. */
#define STEP_MAX TR_JSON_STEP_MAX

struct out {
        char *at;
        char *end; /* where text has to stop */
};

static void put(struct out *out, const char *data, size_t len) {
        size_t room = (size_t)(out->end - out->at);

        if (len > room)
                len = room;
        memcpy(out->at, data, len);
        out->at += len;
}

static void put_text(struct out *out, const char *text) {
        put(out, text, strlen(text));
}

static bool is_full(const struct out *out) {
        return out->end - out->at < STEP_MAX;
}

int tr_log_priority(enum tr_log_level level) {
        static const int priorities[] = {
                [TR_LOG_ERROR] = 3,
                [TR_LOG_WARNING] = 4,
                [TR_LOG_INFO] = 6,
                [TR_LOG_DEBUG] = 7,
        };

        return priorities[level];
}

/* Text for eyes: `next` goes before each further line of it. */
static void put_plain(struct out *out, const char *text, size_t len, const char *next) {
        for (size_t i = 0; i < len && !is_full(out);) {
                size_t bytes = tr_utf8_character(text + i, len - i);
                char escaped[8];

                if (text[i] == '\n') {
                        put_text(out, next);
                } else if (bytes > 0 && (text[i] == '\t' || !tr_utf8_is_control(text + i, bytes))) {
                        put(out, text + i, bytes);
                } else {
                        /* of a control character of two bytes the second is no character by itself, and comes here
                         * next */
                        bytes = 1;
                        snprintf(escaped, sizeof(escaped), "\\x%02x", (unsigned char)text[i]);
                        put_text(out, escaped);
                }
                i += bytes;
        }
}

/* Who it is about: "counter[1a2b3c4d]: ". */
static void put_subject(struct out *out, const struct tr_log_context *context) {
        if (!context->actor && !context->handle)
                return;
        if (context->actor)
                put_plain(out, context->actor, strlen(context->actor), " ");
        if (context->handle) {
                put_text(out, "[");
                put_plain(out, context->handle, strlen(context->handle), " ");
                put_text(out, "]");
        }
        put_text(out, ": ");
}

/* And for whom: " (uid 1000, pid 77)". */
static void put_circumstances(struct out *out, const struct tr_log_context *context) {
        char text[64];

        if (context->has_peer) {
                snprintf(text, sizeof(text), " (uid %" PRIu32 ", pid %" PRId32 ")", context->peer_uid,
                         context->peer_pid);
                put_text(out, text);
        }
        if (context->trace) {
                put_text(out, " (trace ");
                put_plain(out, context->trace, strlen(context->trace), " ");
                put_text(out, ")");
        }
}

size_t tr_log_line_len(const struct tr_log_line *line) {
        size_t len = line->len;

        while (len > 0 && line->text[len - 1] == '\n')
                len--;
        return len;
}

static size_t finish(struct out *out, const char *buffer, const char *end) {
        out->end += ROOM_FOR_END;
        put_text(out, end);
        return (size_t)(out->at - buffer);
}

size_t tr_log_render_text(const struct tr_log_line *line, char *buffer, size_t size) {
        struct out out = { buffer, buffer + size - ROOM_FOR_END };
        struct tm local;
        char text[32];

        localtime_r(&line->when.tv_sec, &local);
        put(&out, text, strftime(text, sizeof(text), "%H:%M:%S", &local));
        snprintf(text, sizeof(text), ".%03u ", (unsigned int)(line->when.tv_nsec / 1000000) % 1000);
        put_text(&out, text);
        put_text(&out, tr_log_level_text(line->level));
        put_text(&out, ": ");
        put_subject(&out, &line->context);
        put_plain(&out, line->text, tr_log_line_len(line), "\n    ");
        put_circumstances(&out, &line->context);
        return finish(&out, buffer, "\n");
}

size_t tr_log_render_prefixed(const struct tr_log_line *line, char *buffer, size_t size) {
        struct out out = { buffer, buffer + size - ROOM_FOR_END };
        char prefix[8], next[16];

        snprintf(prefix, sizeof(prefix), "<%d>", tr_log_priority(line->level));
        snprintf(next, sizeof(next), "\n%s    ", prefix);
        put_text(&out, prefix);
        put_subject(&out, &line->context);
        put_plain(&out, line->text, tr_log_line_len(line), next);
        put_circumstances(&out, &line->context);
        return finish(&out, buffer, "\n");
}

static void put_json_string(struct out *out, const char *text, size_t len) {
        put_text(out, "\"");
        out->at = tr_json_escape(out->at, out->end, text, len);
        put_text(out, "\"");
}

static void put_json_member(struct out *out, const char *key, const char *text) {
        if (!text)
                return;
        put_text(out, ",\"");
        put_text(out, key);
        put_text(out, "\":");
        put_json_string(out, text, strlen(text));
}

size_t tr_log_render_json(const struct tr_log_line *line, char *buffer, size_t size) {
        struct out out = { buffer, buffer + size - ROOM_FOR_END };
        const struct tr_log_context *context = &line->context;
        struct tm utc;
        char text[96];

        gmtime_r(&line->when.tv_sec, &utc);
        put(&out, text, strftime(text, sizeof(text), "{\"time\":\"%Y-%m-%dT%H:%M:%S", &utc));
        snprintf(text, sizeof(text), ".%06uZ\"", (unsigned int)(line->when.tv_nsec / 1000) % 1000000);
        put_text(&out, text);
        put_json_member(&out, "level", tr_log_level_text(line->level));
        put_json_member(&out, "actor", context->actor);
        put_json_member(&out, "handle", context->handle);
        put_json_member(&out, "trace", context->trace);
        if (context->has_peer) {
                snprintf(text, sizeof(text), ",\"peer_uid\":%" PRIu32 ",\"peer_pid\":%" PRId32, context->peer_uid,
                         context->peer_pid);
                put_text(&out, text);
        }
        put_text(&out, ",\"message\":");
        put_json_string(&out, line->text, tr_log_line_len(line));
        return finish(&out, buffer, "}\n");
}
