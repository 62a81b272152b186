/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_FEED_H
#define TR_IO_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/core/failure.h"
#include "proto/value.h"

struct tr_chosen;
struct tr_connection;
struct tr_feed;
struct tr_loop;
struct tr_subscription;

/*
 * The feed: events on their way from wherever something happened, on any thread, to the connections that subscribed to
 * their topic. The loop tells them. Nobody waits for anybody: what finds the queue or a connection's output full is
 * left out and counted, and the count goes out with the next event that does not.
 */
enum tr_topic {
        TR_TOPIC_LIFECYCLE,
        TR_TOPIC_TRACE,
        TR_TOPIC_LOG,
        TR_TOPIC_TASK,
        TR_TOPIC_REFUSED,
        TR_TOPICS_COUNT,
};

bool tr_topic_parse(const char *text, size_t len, enum tr_topic *ret_topic);

/* An event while it is written: what it says, as pairs, and whom it concerns beside those who may see everything. */
struct tr_event_writer {
        enum tr_topic topic;
        struct tr_writer pairs; /* key, value, key, value, ... */
        uint32_t pairs_count;
        uint32_t uids[2];
        uint32_t uids_count;
};

/* 0 or a negative errno. */
TR_MUST_CHECK int tr_feed_new(struct tr_loop *loop, struct tr_feed **ret_feed);
/* Nobody subscribes any more, and no other thread uses it. NULL is fine. */
void tr_feed_free(struct tr_feed *feed);

/* Any thread, perhaps under a lock: whether an event has to be written at all. */
bool tr_feed_is_wanted(struct tr_feed *feed, enum tr_topic topic);
/* Any thread, perhaps under a lock. What is written is the caller's still. */
void tr_feed_put(struct tr_feed *feed, const struct tr_event_writer *event);

/* All that follows is the loop thread's. */

/* Events that were left out because nobody had read those before them, a count for each who was not told. Who chose a rate left
 * the others out himself. */
uint64_t tr_feed_dropped(struct tr_feed *feed);

/* What a connection subscribed to. */
struct tr_subscriptions {
        struct tr_subscription *of[TR_TOPICS_COUNT]; /* NULL: not to this */
};

/* Instead of what it subscribed to before. `rate`: events a second at most; 0: any. NULL, or no-memory, and nothing has changed;
 * the chosen method is taken in any case. */
struct tr_failure *tr_feed_subscribe(struct tr_feed *feed, struct tr_connection *connection, enum tr_topic topic,
                                     struct tr_chosen *take_chosen, uint32_t rate);
/* Nothing more comes. Not to have subscribed is fine. */
void tr_feed_unsubscribe(struct tr_feed *feed, struct tr_connection *connection, enum tr_topic topic);
/* From everything: it closes. */
void tr_feed_leave(struct tr_feed *feed, struct tr_connection *connection);

#endif
