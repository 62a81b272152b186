/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_WATCH_EVENT_H
#define TR_WATCH_EVENT_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "daemon/io/feed.h"

struct tr_failure;
struct tr_target;

/*
 * Writing events. They hold text, whole numbers and maps only, so they are the same for connections that take values
 * plain or typed, and never more of a handle than its first digits.
 */

/* Begins with its time. To be ended by tr_event_put(). */
struct tr_event_writer tr_event(enum tr_topic topic, const struct timespec *when);
/* The same, now. */
struct tr_event_writer tr_event_now(enum tr_topic topic);
/* Puts it into the feed, and frees what it took. */
void tr_event_put(struct tr_feed *feed, struct tr_event_writer *event);

/* A pair. Text is cut, at TR_EVENT_TEXT_MAX where nothing else is said; NULL is left out. */
#define TR_EVENT_TEXT_MAX ((size_t)16 << 10)
void tr_event_add_text(struct tr_event_writer *event, const char *key, const char *text);
void tr_event_add_bytes(struct tr_event_writer *event, const char *key, const char *text, size_t len);
void tr_event_add_cut(struct tr_event_writer *event, const char *key, const char *text, size_t len, size_t max);
void tr_event_add_number(struct tr_event_writer *event, const char *key, uint64_t number);
/* A map, whose pairs are freed. */
void tr_event_add_map(struct tr_event_writer *event, const char *key, struct tr_event_writer *take_map);
/* A failure as a map, in whatever form a connection takes its own errors. What an actor raised is left out: it may hold handles. */
void tr_event_add_failure(struct tr_event_writer *event, const char *key, const struct tr_failure *failure);
/* `handle`, `name` and `actor`; and it concerns who started it. */
void tr_event_add_target(struct tr_event_writer *event, const struct tr_target *target);
/* `by`, without a pid where that is 0. */
void tr_event_add_by(struct tr_event_writer *event, uint32_t uid, int32_t pid);
/* It concerns this user. */
void tr_event_concerns(struct tr_event_writer *event, uint32_t uid);

#endif
