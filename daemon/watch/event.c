/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that events are made of. A failure to write is remembered by the writer; the feed counts the event as one
 * that was left out then.
 */
#include "daemon/watch/event.h"

#include <string.h>

#include "daemon/core/failure.h"
#include "daemon/core/target.h"

static void add_key(struct tr_event_writer *event, const char *key) {
        tr_write_text(&event->pairs, key);
        event->pairs_count++;
}

struct tr_event_writer tr_event(enum tr_topic topic, const struct timespec *when) {
        struct tr_event_writer event = { .topic = topic };
        /* no further than to microseconds, as the log has it */
        const struct tr_time time = { when->tv_sec, (uint32_t)(when->tv_nsec / 1000 * 1000) };
        char text[TR_TIME_TEXT_MAX];
        tr_event_add_bytes(&event, "time", text, tr_time_format(&time, text));
        return event;
}

struct tr_event_writer tr_event_now(enum tr_topic topic) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        return tr_event(topic, &now);
}

void tr_event_put(struct tr_feed *feed, struct tr_event_writer *event) {
        tr_feed_put(feed, event);
        tr_writer_deinit(&event->pairs);
}

void tr_event_add_cut(struct tr_event_writer *event, const char *key, const char *text, size_t len, size_t max) {
        if (!text)
                return;
        if (len > max) {
                len = max;
                while (len > 0 && (text[len] & 0xc0) == 0x80) /* in the middle of a character */
                        len--;
        }
        add_key(event, key);
        tr_write_string(&event->pairs, text, len);
}

void tr_event_add_bytes(struct tr_event_writer *event, const char *key, const char *text, size_t len) {
        tr_event_add_cut(event, key, text, len, TR_EVENT_TEXT_MAX);
}

void tr_event_add_text(struct tr_event_writer *event, const char *key, const char *text) {
        if (text)
                tr_event_add_bytes(event, key, text, strlen(text));
}

void tr_event_add_number(struct tr_event_writer *event, const char *key, uint64_t number) {
        add_key(event, key);
        tr_write_uint(&event->pairs, number);
}

void tr_event_add_map(struct tr_event_writer *event, const char *key, struct tr_event_writer *take_map) {
        add_key(event, key);
        tr_write_map(&event->pairs, take_map->pairs_count);
        tr_write_raw(&event->pairs, take_map->pairs.data, take_map->pairs.len);
        if (tr_writer_error(&take_map->pairs))
                event->pairs.error = tr_writer_error(&take_map->pairs);
        tr_writer_deinit(&take_map->pairs);
}

void tr_event_add_failure(struct tr_event_writer *event, const char *key, const struct tr_failure *failure) {
        static const char *const members[] = { "kind", "handler", "traceback" };
        struct tr_event_writer error = { 0 };

        tr_event_add_text(&error, "code", tr_code_text(failure->code));
        tr_event_add_text(&error, "message", failure->message);
        for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
                const char *text;
                size_t len;
                if (tr_failure_find_text(failure, members[i], &text, &len))
                        tr_event_add_bytes(&error, members[i], text, len);
        }
        tr_event_add_map(event, key, &error);
}

void tr_event_add_target(struct tr_event_writer *event, const struct tr_target *target) {
        char handle[TR_HANDLE_SHORT + 1];
        tr_handle_format_short(&target->handle, handle);
        tr_event_add_text(event, "handle", handle);
        tr_event_add_text(event, "name", target->label);
        const char *actor = tr_target_actor(target);
        if (*actor) /* a client that listens is none */
                tr_event_add_text(event, "actor", actor);
        tr_event_concerns(event, target->owner_uid);
}

void tr_event_add_by(struct tr_event_writer *event, uint32_t uid, int32_t pid) {
        add_key(event, "by");
        tr_write_map(&event->pairs, pid ? 2 : 1);
        tr_write_text(&event->pairs, "uid");
        tr_write_uint(&event->pairs, uid);
        if (pid) {
                tr_write_text(&event->pairs, "pid");
                tr_write_int(&event->pairs, pid);
        }
}

void tr_event_concerns(struct tr_event_writer *event, uint32_t uid) {
        event->uids[event->uids_count++] = uid;
}
