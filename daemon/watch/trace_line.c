/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All texts of a span are bounded, so that the longest line is, too: five names and a message, each byte of which becomes six at
 * most (5.4 KiB), and what stands between them (1 KiB).
 */
#include "config.h"

#include "daemon/watch/trace_line.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/json.h"
#include "daemon/io/traces.h"

/* OTLP's numbers. */
#define KIND_SERVER 2
#define STATUS_OK 1
#define STATUS_ERROR 2

struct out {
        char *at;
        char *end;
};

__attribute__((format(printf, 2, 3))) static void put(struct out *out, const char *format, ...) {
        size_t room = (size_t)(out->end - out->at);
        va_list arguments;
        int len;

        va_start(arguments, format);
        len = vsnprintf(out->at, room, format, arguments);
        va_end(arguments);
        assert(len >= 0 && (size_t)len < room);
        out->at += len;
}

static void put_escaped(struct out *out, const char *text) {
        out->at = tr_json_escape(out->at, out->end, text, strlen(text));
}

static void put_string(struct out *out, const char *text) {
        put(out, "\"");
        put_escaped(out, text);
        put(out, "\"");
}

static void put_key(struct out *out, const char *key) {
        put(out, "%s{\"key\":\"%s\",\"value\":", out->at[-1] == '[' ? "" : ",", key);
}

static void put_text(struct out *out, const char *key, const char *text) {
        if (!*text)
                return;
        put_key(out, key);
        put(out, "{\"stringValue\":");
        put_string(out, text);
        put(out, "}}");
}

static void put_number(struct out *out, const char *key, int64_t number) {
        put_key(out, key);
        put(out, "{\"intValue\":\"%" PRId64 "\"}}", number);
}

static void put_resource(struct out *out) {
        put(out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
        put_text(out, "service.name", "trouped");
        put_text(out, "service.version", PACKAGE_VERSION);
        put_number(out, "process.pid", getpid());
        put(out, "]},\"scopeSpans\":[{\"scope\":{\"name\":\"trouped\",\"version\":\"%s\"},\"spans\":[", PACKAGE_VERSION);
}

static void put_id(struct out *out, const char *key, const uint8_t *id, size_t bytes) {
        char text[2 * sizeof((struct tr_span_record *)NULL)->trace + 1];

        tr_span_id_format(id, bytes, text);
        put(out, "\"%s\":\"%s\",", key, text);
}

static void put_attributes(struct out *out, const struct tr_span_record *record) {
        put(out, "\"attributes\":[");
        put_text(out, "rpc.system", "troupe");
        put_text(out, "rpc.service", record->component);
        put_text(out, "rpc.method", record->operation);
        put_text(out, "troupe.instance", record->instance);
        put_number(out, "troupe.caller.uid", record->uid);
        if (record->pid)
                put_number(out, "troupe.caller.pid", record->pid);
        put_number(out, "troupe.queued_ns", (int64_t)record->queued_ns);
        put_number(out, "troupe.run_ns", (int64_t)record->run_ns);
        put_number(out, "troupe.attempt", record->attempt);
        put_text(out, "troupe.outcome", tr_span_outcome(record));
        put(out, "]");
}

static void put_status(struct out *out, const struct tr_span_record *record) {
        put(out, "\"status\":{\"code\":%d", record->failed ? STATUS_ERROR : STATUS_OK);
        if (record->failed) {
                put(out, ",\"message\":");
                put_string(out, record->message);
        }
        put(out, "}");
}

size_t tr_trace_line(const struct tr_span_record *record, char ret_line[static TR_TRACE_LINE_MAX]) {
        struct out out = { ret_line, ret_line + TR_TRACE_LINE_MAX };
        uint64_t began_ns = (uint64_t)record->began_ns;

        put_resource(&out);
        put(&out, "{");
        put_id(&out, "traceId", record->trace, sizeof(record->trace));
        put_id(&out, "spanId", record->span, sizeof(record->span));
        if (tr_span_has_parent(record))
                put_id(&out, "parentSpanId", record->parent, sizeof(record->parent));
        put(&out, "\"flags\":%u,\"name\":\"", record->flags);
        put_escaped(&out, record->component);
        put(&out, "/");
        put_escaped(&out, record->operation);
        put(&out, "\",\"kind\":%d,\"startTimeUnixNano\":\"%" PRIu64 "\",\"endTimeUnixNano\":\"%" PRIu64 "\",", KIND_SERVER, began_ns,
            began_ns + record->queued_ns + record->run_ns);
        put_attributes(&out, record);
        put(&out, ",");
        put_status(&out, record);
        put(&out, "}]}]}]}\n");
        return (size_t)(out.at - ret_line);
}
