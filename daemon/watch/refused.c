/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topic `refused`: messages that were dropped, and notifications that were refused, so that it is told to somebody.
 * Who asked is answered, and is not told here.
 */
#include <string.h>

#include "daemon/core/system.h"
#include "daemon/core/target.h"
#include "daemon/watch/event.h"
#include "daemon/watch/watch.h"

/* Bytes of names that a peer made up. */
#define NAME_MAX_BYTES 128

/* Whom it was for: of a handle its first digits, or a name as it was written. What else is known of it follows. */
static void add_target(struct tr_event_writer *event, const struct tr_refused *refused) {
        char handle[TR_HANDLE_SHORT + 1];
        const char *to = refused->to;
        size_t len = refused->to_len;

        if (refused->target) {
                tr_handle_format_short(&refused->target->handle, handle);
                tr_event_add_text(event, "target", handle);
                tr_event_add_target(event, refused->target);
        } else if (to && tr_handle_has_form(to, len)) {
                tr_event_add_bytes(event, "target", (const char *)memchr(to, ':', len) + 1, TR_HANDLE_SHORT);
        } else {
                tr_event_add_cut(event, "target", to, len, NAME_MAX_BYTES);
        }
}

void tr_watch_refused(struct tr_feed *feed, const struct tr_refused *refused) {
        if (refused->is_ask || !tr_feed_is_wanted(feed, TR_TOPIC_REFUSED))
                return;
        struct tr_event_writer event = tr_event_now(TR_TOPIC_REFUSED);
        tr_event_add_text(&event, "code", tr_code_text(refused->code));
        tr_event_add_text(&event, "message", refused->why);
        add_target(&event, refused);
        tr_event_add_cut(&event, "handler", refused->handler, refused->handler_len, NAME_MAX_BYTES);
        tr_event_add_cut(&event, "method", refused->method, refused->method_len, NAME_MAX_BYTES);
        tr_event_add_by(&event, refused->sender_uid, refused->sender_pid);
        tr_event_concerns(&event, refused->sender_uid);
        tr_event_put(feed, &event);
}
