/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_WATCH_WATCH_H
#define TR_WATCH_WATCH_H

struct tr_feed;
struct tr_log_line;
struct tr_news;
struct tr_refused;
struct tr_span_news;
struct tr_task_news;
struct tr_traces;

/*
 * What the layers below say through their hooks, as events in the feed. Any thread; nothing here waits or logs, and
 * where nobody subscribed nothing is done.
 */
void tr_watch_news(struct tr_feed *feed, const struct tr_news *news);
void tr_watch_refused(struct tr_feed *feed, const struct tr_refused *refused);
void tr_watch_task(struct tr_feed *feed, const struct tr_task_news *news);
void tr_watch_line(struct tr_feed *feed, const struct tr_log_line *line);
/* Keeps it in the traces, too, in any case. */
void tr_watch_span(struct tr_feed *feed, struct tr_traces *traces, const struct tr_span_news *news);

#endif
