/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topic `log`: the lines of the daemon's log, with the keys that they have as JSON.
 */
#include "daemon/base/log_line.h"
#include "daemon/watch/event.h"
#include "daemon/watch/watch.h"

void tr_watch_line(struct tr_feed *feed, const struct tr_log_line *line) {
        if (!tr_feed_is_wanted(feed, TR_TOPIC_LOG))
                return;
        const struct tr_log_context *context = &line->context;
        struct tr_event_writer event = tr_event(TR_TOPIC_LOG, &line->when);
        tr_event_add_text(&event, "level", tr_log_level_text(line->level));
        tr_event_add_text(&event, "actor", context->actor);
        tr_event_add_text(&event, "handle", context->handle);
        tr_event_add_text(&event, "trace", context->trace);
        if (context->has_peer) {
                tr_event_add_number(&event, "peer_uid", context->peer_uid);
                tr_event_add_number(&event, "peer_pid", (uint64_t)context->peer_pid);
                tr_event_concerns(&event, context->peer_uid);
        }
        if (context->has_owner)
                tr_event_concerns(&event, context->owner_uid);
        tr_event_add_bytes(&event, "message", line->text, tr_log_line_len(line));
        tr_event_put(feed, &event);
}
