/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The feed. An event is written once, as its pairs; what differs between subscribers (the method they chose, what was
 * left out for them) is put around that.
 *
 * - Each topic has a bound of its own in the queue, so that a flood of one does not cost another its events.
 * - A queue that is not empty has been posted to the loop, and the loop posts it again until it is empty.
 * - What the telling itself says in the log is told to nobody: each such line would make the next.
 * - A count of what the queue could not take is one number for all who subscribed to the topic. So who sees only what
 *   concerns him may be told of more than he would have seen.
 */
#include "config.h"

#include "daemon/io/feed.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/lock.h"
#include "daemon/io/chosen.h"
#include "daemon/io/connection.h"
#include "daemon/io/loop.h"

/* Of one topic, waiting for the loop. */
#define QUEUED_BYTES ((size_t)512 << 10)
/* Told in one go; then the loop looks after others. */
#define ROUND_EVENTS 64

static const char *const topic_texts[TR_TOPICS_COUNT] = {
        [TR_TOPIC_LIFECYCLE] = "lifecycle",
        [TR_TOPIC_TRACE] = "trace",
        [TR_TOPIC_LOG] = "log",
        [TR_TOPIC_TASK] = "task",
        [TR_TOPIC_REFUSED] = "refused",
};

/* An event in the queue. */
struct queued {
        struct tr_list link;
        enum tr_topic topic;
        uint64_t number; /* in the order in which they came */
        uint64_t lost;   /* of its topic, before it came */
        uint32_t uids[2];
        uint32_t uids_count;
        uint32_t pairs_count;
        size_t bytes;
        uint8_t pairs[];
};

struct tr_subscription {
        struct tr_list link;    /* among those of its topic */
        struct tr_list to_push; /* told something in this round */
        struct tr_connection *connection;
        struct tr_chosen chosen;
        uint32_t rate; /* 0: any */
        uint64_t second_began_ns;
        uint32_t told_in_second;
        uint64_t since;       /* it is told of events behind this one */
        uint64_t lost_before; /* of its topic, when it was told last */
        uint64_t left_out;    /* for it alone, since it was told last */
};

struct topic {
        struct tr_list subscriptions; /* the loop thread's */
        _Atomic uint32_t wanted;      /* how many they are */
        size_t bytes;                 /* queued; guarded by the feed's lock */
        uint64_t lost;                /* events, since the beginning; guarded by the feed's lock */
};

struct tr_feed {
        struct tr_loop *loop;
        struct tr_work work;
        struct tr_list to_push; /* the loop thread's */
        uint64_t untold_total;  /* the loop thread's: what a subscriber's output could not take */
        struct tr_lock lock;    /* nothing else is acquired under it */
        struct tr_list queue TR_GUARDED_BY(lock);
        uint64_t last TR_GUARDED_BY(lock); /* number of the event that came last */
        struct topic topics[TR_TOPICS_COUNT];
};

/* Set while the loop tells. */
static _Thread_local bool telling;

bool tr_topic_parse(const char *text, size_t len, enum tr_topic *ret_topic) {
        for (size_t i = 0; i < TR_TOPICS_COUNT; i++)
                if (strlen(topic_texts[i]) == len && memcmp(topic_texts[i], text, len) == 0) {
                        *ret_topic = (enum tr_topic)i;
                        return true;
                }
        return false;
}

/* Putting events in */

bool tr_feed_is_wanted(struct tr_feed *feed, enum tr_topic topic) {
        /* relaxed: who subscribes while something happens hears of it, or does not */
        return !telling && atomic_load_explicit(&feed->topics[topic].wanted, memory_order_relaxed) > 0;
}

static struct queued *event_new(const struct tr_event_writer *writer) {
        if (tr_writer_error(&writer->pairs) != 0)
                return NULL;
        struct queued *event = malloc(sizeof(*event) + writer->pairs.len);
        if (!event)
                return NULL;
        *event = (struct queued){
                .topic = writer->topic,
                .uids = { writer->uids[0], writer->uids[1] },
                .uids_count = writer->uids_count,
                .pairs_count = writer->pairs_count,
                .bytes = writer->pairs.len,
        };
        if (event->bytes)
                memcpy(event->pairs, writer->pairs.data, event->bytes);
        return event;
}

void tr_feed_put(struct tr_feed *feed, const struct tr_event_writer *writer) {
        struct topic *topic = &feed->topics[writer->topic];
        struct queued *event = event_new(writer);

        tr_lock_acquire(&feed->lock);
        bool was_empty = tr_list_is_empty(&feed->queue);
        bool fits = event && topic->bytes + event->bytes <= QUEUED_BYTES;
        if (fits) {
                event->number = ++feed->last;
                event->lost = topic->lost;
                topic->bytes += event->bytes;
                tr_list_append(&feed->queue, &event->link);
        } else {
                topic->lost++;
        }
        tr_lock_release(&feed->lock);
        if (!fits)
                free(event);
        else if (was_empty)
                tr_loop_post(feed->loop, &feed->work);
}

static struct queued *feed_take(struct tr_feed *feed) {
        tr_lock_acquire(&feed->lock);
        struct queued *event = tr_list_first(&feed->queue, struct queued, link);
        if (event) {
                tr_list_unlink(&event->link);
                feed->topics[event->topic].bytes -= event->bytes;
        }
        tr_lock_release(&feed->lock);
        return event;
}

/* Telling */

static bool concerns(const struct queued *event, const struct tr_connection *connection) {
        if (connection->roles & TR_ROLE_OPERATE)
                return true;
        for (uint32_t i = 0; i < event->uids_count; i++)
                if (event->uids[i] == connection->peer.uid)
                        return true;
        return false;
}

static bool is_within_rate(struct tr_subscription *subscription) {
        if (subscription->rate == 0)
                return true;
        uint64_t now_ns = tr_clock_ns();
        if (subscription->told_in_second == 0 || now_ns - subscription->second_began_ns >= TR_NS_PER_S) {
                subscription->second_began_ns = now_ns;
                subscription->told_in_second = 0;
        }
        return subscription->told_in_second < subscription->rate;
}

/* One notification. */
struct telling {
        const struct queued *event;
        const struct tr_chosen *chosen;
        uint64_t dropped;
};

static void write_telling(struct tr_writer *writer, const void *userdata) {
        const struct telling *what = userdata;
        const struct queued *event = what->event;
        tr_write_array(writer, 3);
        tr_write_int(writer, 2);
        tr_chosen_write(what->chosen, writer);
        tr_write_array(writer, 2);
        tr_write_text(writer, topic_texts[event->topic]);
        tr_write_map(writer, event->pairs_count + (what->dropped > 0));
        tr_write_raw(writer, event->pairs, event->bytes);
        if (what->dropped == 0)
                return;
        tr_write_text(writer, "dropped");
        tr_write_uint(writer, what->dropped);
}

static void subscription_tell(struct tr_feed *feed, struct tr_subscription *subscription, const struct queued *event) {
        const struct telling what = {
                .event = event,
                .chosen = &subscription->chosen,
                .dropped = event->lost - subscription->lost_before + subscription->left_out,
        };
        if (event->number <= subscription->since || !concerns(event, subscription->connection))
                return;
        bool is_told = false;
        if (is_within_rate(subscription)) {
                is_told = tr_connection_tell(subscription->connection, write_telling, &what);
                feed->untold_total += !is_told;
        }
        if (!is_told) {
                subscription->left_out++;
                return;
        }
        subscription->told_in_second++;
        subscription->lost_before = event->lost;
        subscription->left_out = 0;
        if (tr_list_is_empty(&subscription->to_push))
                tr_list_append(&feed->to_push, &subscription->to_push);
}

/* Sends what was written, and has an eye on who does not read. Any of them may be closed here, and leaves the list then. */
static void feed_push(struct tr_feed *feed) {
        struct tr_subscription *subscription;
        while ((subscription = tr_list_first(&feed->to_push, struct tr_subscription, to_push))) {
                tr_list_unlink(&subscription->to_push);
                tr_connection_push(subscription->connection);
                tr_connection_attend(subscription->connection);
        }
}

static void on_work(struct tr_work *work) {
        struct tr_feed *feed = tr_container_of(work, struct tr_feed, work);
        struct tr_subscription *subscription;
        struct queued *event;

        telling = true;
        for (int i = 0; i < ROUND_EVENTS && (event = feed_take(feed)); i++) {
                tr_list_for_each(subscription, &feed->topics[event->topic].subscriptions, link)
                        subscription_tell(feed, subscription, event);
                free(event);
        }
        telling = false;
        feed_push(feed);

        tr_lock_acquire(&feed->lock);
        bool is_empty = tr_list_is_empty(&feed->queue);
        tr_lock_release(&feed->lock);
        if (!is_empty)
                tr_loop_post(feed->loop, &feed->work);
}

uint64_t tr_feed_dropped(struct tr_feed *feed) {
        uint64_t dropped = feed->untold_total;
        tr_lock_acquire(&feed->lock);
        for (size_t i = 0; i < TR_TOPICS_COUNT; i++)
                dropped += feed->topics[i].lost;
        tr_lock_release(&feed->lock);
        return dropped;
}

/* Subscribing */

/* From here on, or from where one that it replaces has come to. */
static void subscription_begin(struct tr_feed *feed, struct tr_subscription *subscription, enum tr_topic topic) {
        const struct tr_subscription *before = subscription->connection->subscriptions.of[topic];
        if (before) {
                subscription->since = before->since;
                subscription->lost_before = before->lost_before;
                subscription->left_out = before->left_out;
                return;
        }
        tr_lock_acquire(&feed->lock);
        subscription->since = feed->last;
        subscription->lost_before = feed->topics[topic].lost;
        tr_lock_release(&feed->lock);
}

struct tr_failure *tr_feed_subscribe(struct tr_feed *feed, struct tr_connection *connection, enum tr_topic topic,
                                     struct tr_chosen *take_chosen, uint32_t rate) {
        struct tr_subscription *subscription = calloc(1, sizeof(*subscription));
        if (!subscription) {
                tr_chosen_deinit(take_chosen);
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the subscription");
        }
        subscription->connection = connection;
        subscription->chosen = *take_chosen;
        subscription->rate = rate;
        subscription_begin(feed, subscription, topic);
        tr_list_init(&subscription->to_push);

        tr_feed_unsubscribe(feed, connection, topic);
        tr_list_append(&feed->topics[topic].subscriptions, &subscription->link);
        atomic_fetch_add_explicit(&feed->topics[topic].wanted, 1, memory_order_relaxed);
        connection->subscriptions.of[topic] = subscription;
        return NULL;
}

void tr_feed_unsubscribe(struct tr_feed *feed, struct tr_connection *connection, enum tr_topic topic) {
        struct tr_subscription *subscription = connection->subscriptions.of[topic];
        if (!subscription)
                return;
        connection->subscriptions.of[topic] = NULL;
        atomic_fetch_sub_explicit(&feed->topics[topic].wanted, 1, memory_order_relaxed);
        tr_list_unlink(&subscription->link);
        tr_list_unlink(&subscription->to_push);
        tr_chosen_deinit(&subscription->chosen);
        free(subscription);
}

void tr_feed_leave(struct tr_feed *feed, struct tr_connection *connection) {
        for (size_t i = 0; i < TR_TOPICS_COUNT; i++)
                tr_feed_unsubscribe(feed, connection, (enum tr_topic)i);
}

int tr_feed_new(struct tr_loop *loop, struct tr_feed **ret_feed) {
        struct tr_feed *feed = calloc(1, sizeof(*feed));
        if (!feed)
                return tr_error_origin(-ENOMEM);
        feed->loop = loop;
        tr_work_init(&feed->work, on_work);
        tr_lock_init(&feed->lock);
        tr_list_init(&feed->queue);
        tr_list_init(&feed->to_push);
        for (size_t i = 0; i < TR_TOPICS_COUNT; i++)
                tr_list_init(&feed->topics[i].subscriptions);
        *ret_feed = feed;
        return 0;
}

void tr_feed_free(struct tr_feed *feed) {
        struct queued *event;
        if (!feed)
                return;
        tr_loop_forget(feed->loop, &feed->work);
        while ((event = feed_take(feed)))
                free(event);
        tr_lock_deinit(&feed->lock);
        free(feed);
}
