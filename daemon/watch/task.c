/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topic `task`: what becomes of tasks.
 */
#include "daemon/core/task.h"
#include "daemon/watch/event.h"
#include "daemon/watch/watch.h"

void tr_watch_task(struct tr_feed *feed, const struct tr_task_news *news) {
        if (!tr_feed_is_wanted(feed, TR_TOPIC_TASK))
                return;
        struct tr_event_writer event = tr_event_now(TR_TOPIC_TASK);
        tr_event_add_text(&event, "event", tr_task_event_text(news->event));
        tr_event_add_text(&event, "id", news->id);
        tr_event_add_text(&event, "component", news->component);
        tr_event_add_text(&event, "operation", news->operation);
        tr_event_add_number(&event, "attempt", news->attempt);
        if (news->cause)
                tr_event_add_failure(&event, "cause", news->cause);
        tr_event_concerns(&event, news->uid);
        tr_event_put(feed, &event);
}
