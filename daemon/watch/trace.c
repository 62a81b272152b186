/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topic `trace`: calls of components that have ended.
 */
#include "daemon/io/traces.h"
#include "daemon/watch/event.h"
#include "daemon/watch/watch.h"

void tr_watch_span(struct tr_feed *feed, struct tr_traces *traces, const struct tr_span_news *news) {
        struct tr_span_record record;

        tr_traces_put(traces, news, &record);
        if (!tr_feed_is_wanted(feed, TR_TOPIC_TRACE))
                return;
        struct tr_event_writer event = tr_event_now(TR_TOPIC_TRACE);
        tr_span_write(&record, &event.pairs);
        event.pairs_count += tr_span_pairs(&record);
        tr_event_concerns(&event, record.uid);
        tr_event_put(feed, &event);
}
