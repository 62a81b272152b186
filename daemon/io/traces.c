/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock is held for the copy of some records and no longer, so that who asks for all spans does not keep those waiting who end
 * one. A span stands in the slot of its number.
 *
 * When a call came is known by the monotonic clock. What that is in the time of day is worked out once and kept while it is right
 * to a millisecond, so that spans of one trace stand to each other as they were.
 */
#include "config.h"

#include "daemon/io/traces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/clock.h"
#include "daemon/base/lock.h"

/* Read at a time. */
#define CHUNK 16

struct tr_traces {
        struct tr_lock lock; /* nothing else is acquired under it */
        uint64_t last TR_GUARDED_BY(lock);
        int64_t wall_ahead_ns TR_GUARDED_BY(lock); /* of the monotonic clock */
        struct tr_span_record records[TR_TRACES_KEPT] TR_GUARDED_BY(lock);
};

int tr_traces_new(struct tr_traces **ret_traces) {
        struct tr_traces *traces = calloc(1, sizeof(*traces));
        if (!traces)
                return tr_error_origin(-ENOMEM);
        tr_lock_init(&traces->lock);
        *ret_traces = traces;
        return 0;
}

void tr_traces_free(struct tr_traces *traces) {
        if (!traces)
                return;
        tr_lock_deinit(&traces->lock);
        free(traces);
}

/* At most `size` bytes with the NUL, not cut in the middle of a character. */
static void copy_text(char *room, size_t size, const char *text) {
        size_t len = text ? strnlen(text, size) : 0;
        if (len == size) {
                len--;
                while (len > 0 && (text[len] & 0xc0) == 0x80)
                        len--;
        }
        memcpy(room, text ? text : "", len);
        room[len] = '\0';
}

static int64_t wall_ahead_ns(void) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        return now.tv_sec * (int64_t)TR_NS_PER_S + now.tv_nsec - (int64_t)tr_clock_ns();
}

void tr_traces_put(struct tr_traces *traces, const struct tr_span_news *news, struct tr_span_record *ret_record) {
        struct tr_span_record *record = ret_record;
        int64_t ahead_ns = wall_ahead_ns(), off_ns;

        memcpy(record->trace, news->span->trace, sizeof(record->trace));
        memcpy(record->span, news->span->span, sizeof(record->span));
        memcpy(record->parent, news->span->parent, sizeof(record->parent));
        record->flags = news->span->flags;
        record->depth = news->span->depth;
        copy_text(record->component, sizeof(record->component), news->component);
        copy_text(record->operation, sizeof(record->operation), news->operation);
        copy_text(record->instance, sizeof(record->instance), news->instance);
        record->uid = news->uid;
        record->pid = news->pid;
        record->attempt = news->attempt;
        record->queued_ns = news->queued_ns;
        record->run_ns = news->run_ns;
        record->failed = news->failed;
        record->code = news->code;
        copy_text(record->message, sizeof(record->message), news->message);

        tr_lock_acquire(&traces->lock);
        off_ns = ahead_ns - traces->wall_ahead_ns;
        if (off_ns > (int64_t)TR_NS_PER_MS || off_ns < -(int64_t)TR_NS_PER_MS)
                traces->wall_ahead_ns = ahead_ns;
        record->began_ns = (int64_t)news->came_ns + traces->wall_ahead_ns;
        record->number = ++traces->last;
        traces->records[record->number % TR_TRACES_KEPT] = *record;
        tr_lock_release(&traces->lock);
}

uint64_t tr_traces_last(struct tr_traces *traces) {
        tr_lock_acquire(&traces->lock);
        uint64_t last = traces->last;
        tr_lock_release(&traces->lock);
        return last;
}

size_t tr_traces_read(struct tr_traces *traces, uint64_t from, struct tr_span_record *records, size_t max) {
        size_t count = 0;
        tr_lock_acquire(&traces->lock);
        uint64_t first = traces->last < TR_TRACES_KEPT ? 1 : traces->last - TR_TRACES_KEPT + 1;
        for (uint64_t number = from > first ? from : first; number <= traces->last && count < max; number++)
                records[count++] = traces->records[number % TR_TRACES_KEPT];
        tr_lock_release(&traces->lock);
        return count;
}

static bool is_wanted(const struct tr_traces_wanted *wanted, const struct tr_span_record *record) {
        if (!wanted->everybodys && record->uid != wanted->uid)
                return false;
        return !wanted->trace || memcmp(wanted->trace, record->trace, sizeof(record->trace)) == 0;
}

/* Who was called by the other is behind it, also where the clock does not tell them apart. */
static int compare(const void *first, const void *second) {
        const struct tr_span_record *one = first, *other = second;
        if (one->began_ns != other->began_ns)
                return one->began_ns < other->began_ns ? -1 : 1;
        if (one->depth != other->depth)
                return one->depth < other->depth ? -1 : 1;
        return one->number < other->number ? -1 : one->number > other->number;
}

struct found {
        struct tr_span_record *records;
        size_t count;
        size_t room;
};

static int add(struct found *found, const struct tr_span_record *record) {
        if (found->count == found->room) {
                size_t room = found->room ? found->room * 2 : CHUNK;
                struct tr_span_record *records = reallocarray(found->records, room, sizeof(*records));
                if (!records)
                        return tr_error_origin(-ENOMEM);
                found->records = records;
                found->room = room;
        }
        found->records[found->count++] = *record;
        return 0;
}

int tr_traces_find(struct tr_traces *traces, const struct tr_traces_wanted *wanted, struct tr_span_record **ret_records,
                   size_t *ret_count) {
        struct tr_span_record chunk[CHUNK];
        struct found found = { 0 };
        uint64_t last = tr_traces_last(traces), next = 1;
        size_t count;
        int r = 0;

        /* what ends meanwhile is not waited for */
        while (r == 0 && next <= last && (count = tr_traces_read(traces, next, chunk, CHUNK)) > 0) {
                for (size_t i = 0; r == 0 && i < count; i++)
                        if (is_wanted(wanted, &chunk[i]))
                                r = add(&found, &chunk[i]);
                next = chunk[count - 1].number + 1;
        }
        if (r < 0) {
                free(found.records);
                return tr_error_fold(r);
        }
        if (wanted->limit && found.count > wanted->limit) {
                memmove(found.records, found.records + found.count - wanted->limit, wanted->limit * sizeof(*found.records));
                found.count = wanted->limit;
        }
        if (found.count > 0)
                qsort(found.records, found.count, sizeof(*found.records), compare);
        *ret_records = found.records;
        *ret_count = found.count;
        return 0;
}

/* As a map */

void tr_span_id_format(const uint8_t *id, size_t bytes, char *ret_text) {
        static const char digits[] = "0123456789abcdef";
        for (size_t i = 0; i < bytes; i++) {
                ret_text[2 * i] = digits[id[i] >> 4];
                ret_text[2 * i + 1] = digits[id[i] & 0xf];
        }
        ret_text[2 * bytes] = '\0';
}

bool tr_span_has_parent(const struct tr_span_record *record) {
        static const uint8_t none[sizeof(record->parent)];
        return memcmp(record->parent, none, sizeof(none)) != 0;
}

const char *tr_span_outcome(const struct tr_span_record *record) {
        return record->failed ? tr_code_text(record->code) : "ok";
}

static void write_id(struct tr_writer *writer, const char *key, const uint8_t *id, size_t bytes) {
        char text[2 * sizeof((struct tr_span_record *)NULL)->trace + 1];
        tr_span_id_format(id, bytes, text);
        tr_write_text(writer, key);
        tr_write_text(writer, text);
}

static void write_text(struct tr_writer *writer, const char *key, const char *text) {
        if (!*text)
                return;
        tr_write_text(writer, key);
        tr_write_string(writer, text, strlen(text));
}

/* Milliseconds, as all times are, to the microsecond. */
static void write_ms(struct tr_writer *writer, const char *key, uint64_t ns) {
        tr_write_text(writer, key);
        tr_write_float(writer, (double)(ns / TR_NS_PER_US) / 1000);
}

static void write_began(struct tr_writer *writer, int64_t began_ns) {
        const int64_t second = (int64_t)TR_NS_PER_S, us = (int64_t)TR_NS_PER_US;
        const struct tr_time time = { began_ns / second, (uint32_t)(began_ns % second / us * us) };
        char text[TR_TIME_TEXT_MAX];
        size_t len = tr_time_format(&time, text);
        tr_write_text(writer, "began");
        tr_write_str(writer, text, len);
}

static void write_caller(struct tr_writer *writer, uint32_t uid, int32_t pid) {
        tr_write_text(writer, "caller");
        tr_write_map(writer, pid ? 2 : 1);
        tr_write_text(writer, "uid");
        tr_write_uint(writer, uid);
        if (pid) {
                tr_write_text(writer, "pid");
                tr_write_int(writer, pid);
        }
}

uint32_t tr_span_pairs(const struct tr_span_record *record) {
        return 10 + tr_span_has_parent(record) + (*record->instance != '\0') + (*record->message != '\0');
}

void tr_span_write(const struct tr_span_record *record, struct tr_writer *writer) {
        write_id(writer, "trace", record->trace, sizeof(record->trace));
        write_id(writer, "span", record->span, sizeof(record->span));
        if (tr_span_has_parent(record))
                write_id(writer, "parent", record->parent, sizeof(record->parent));
        tr_write_text(writer, "component");
        tr_write_string(writer, record->component, strlen(record->component));
        tr_write_text(writer, "operation");
        tr_write_string(writer, record->operation, strlen(record->operation));
        write_text(writer, "instance", record->instance);
        write_caller(writer, record->uid, record->pid);
        write_began(writer, record->began_ns);
        write_ms(writer, "queued", record->queued_ns);
        write_ms(writer, "run", record->run_ns);
        tr_write_text(writer, "outcome");
        tr_write_text(writer, tr_span_outcome(record));
        write_text(writer, "message", record->message);
        tr_write_text(writer, "attempt");
        tr_write_uint(writer, record->attempt);
}
