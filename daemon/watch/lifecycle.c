/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topic `lifecycle`: how actors begin and end.
 */
#include <stddef.h>

#include "daemon/base/clock.h"
#include "daemon/core/system.h"
#include "daemon/core/target.h"
#include "daemon/watch/event.h"
#include "daemon/watch/watch.h"

static const char *const texts[] = {
        [TR_EVENT_STARTED] = "started",
        [TR_EVENT_STOPPED] = "stopped",
        [TR_EVENT_FAULTED] = "faulted",
        [TR_EVENT_KILLED] = "killed",
        [TR_EVENT_STUCK] = "stuck",
        [TR_EVENT_RESTARTED] = "restarted",
        [TR_EVENT_SLOT_GIVEN_UP] = "slot-given-up",
        [TR_EVENT_SLOW] = "slow",
};

/* Which client did it: started it, or had it end. */
static void add_by(struct tr_event_writer *event, const struct tr_news *news) {
        struct tr_target *target = news->target;
        uint32_t uid;
        int32_t pid;

        switch (news->event) {
        case TR_EVENT_STARTED:
                if (target->owner_pid)
                        tr_event_add_by(event, target->owner_uid, target->owner_pid);
                break;
        case TR_EVENT_STOPPED:
        case TR_EVENT_KILLED:
        case TR_EVENT_STUCK:
                if (tr_target_stopper(target, &uid, &pid))
                        tr_event_add_by(event, uid, pid);
                break;
        case TR_EVENT_FAULTED:
        case TR_EVENT_RESTARTED:
        case TR_EVENT_SLOT_GIVEN_UP:
        case TR_EVENT_SLOW:
                break;
        }
}

void tr_watch_news(struct tr_feed *feed, const struct tr_news *news) {
        if (!tr_feed_is_wanted(feed, TR_TOPIC_LIFECYCLE))
                return;
        struct tr_event_writer event = tr_event_now(TR_TOPIC_LIFECYCLE);
        tr_event_add_text(&event, "event", texts[news->event]);
        tr_event_add_target(&event, news->target);
        tr_event_add_text(&event, "slot", news->slot);
        add_by(&event, news);
        if (news->failure)
                tr_event_add_failure(&event, "error", news->failure);
        if (news->event == TR_EVENT_SLOW) {
                tr_event_add_text(&event, "handler", news->handler);
                tr_event_add_number(&event, "running", news->running_ns / TR_NS_PER_MS);
                tr_event_add_text(&event, "traceback", news->traceback);
        }
        tr_event_put(feed, &event);
}
