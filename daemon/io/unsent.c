/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tick that sends what was left unsent.
 *
 * An entry stays listed until a tick comes by, also when its answers have been sent meanwhile: so an actor that
 * answers a million times a second lists its connections once per tick and not once per batch. Ticks that find
 * nothing to send come at longer and longer intervals, and end when nothing is listed: an idle daemon has none.
 * Whoever lists the first entry then starts them again, which costs one wake of the loop.
 */
#include "config.h"

#include "daemon/io/unsent.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>

#include "daemon/base/lock.h"
#include "daemon/io/loop.h"

#define TICK_MIN_MS 1u
#define TICK_MAX_MS 16u

struct tr_unsent {
        struct tr_loop *loop;
        bool (*send)(struct tr_unsent_entry *entry);
        struct tr_work start;
        struct event *tick;
        unsigned int interval_ms; /* the loop thread's */
        struct tr_lock lock;      /* acquired under a connection's; the loop's only is acquired under it */
        struct tr_list entries TR_GUARDED_BY(lock);
        bool ticking TR_GUARDED_BY(lock); /* a tick is to come, or the loop has been told to start them */
};

static void unsent_arm(struct tr_unsent *unsent, unsigned int interval_ms) {
        struct timeval after = { .tv_usec = (suseconds_t)interval_ms * 1000 };
        unsent->interval_ms = interval_ms;
        event_add(unsent->tick, &after);
}

static void on_start(struct tr_work *work) {
        unsent_arm(tr_container_of(work, struct tr_unsent, start), TICK_MIN_MS);
}

static struct tr_unsent_entry *unsent_take(struct tr_unsent *unsent, struct tr_list *entries) {
        tr_lock_acquire(&unsent->lock);
        struct tr_unsent_entry *entry = tr_list_first(entries, struct tr_unsent_entry, link);
        if (entry)
                tr_list_unlink(&entry->link);
        tr_lock_release(&unsent->lock);
        return entry;
}

static void on_tick(evutil_socket_t fd, short what, void *userdata) {
        struct tr_unsent *unsent = userdata;
        struct tr_list entries = TR_LIST_INIT(entries);
        struct tr_unsent_entry *entry;
        bool found = false;

        tr_lock_acquire(&unsent->lock);
        unsent->ticking = !tr_list_is_empty(&unsent->entries);
        bool go_on = unsent->ticking;
        tr_list_splice(&entries, &unsent->entries);
        tr_lock_release(&unsent->lock);
        if (!go_on)
                return;

        while ((entry = unsent_take(unsent, &entries)))
                found |= unsent->send(entry);
        unsigned int longer_ms = 2 * unsent->interval_ms < TICK_MAX_MS ? 2 * unsent->interval_ms : TICK_MAX_MS;
        unsent_arm(unsent, found ? TICK_MIN_MS : longer_ms);
}

int tr_unsent_new(struct tr_loop *loop, bool (*send)(struct tr_unsent_entry *entry), struct tr_unsent **ret_unsent) {
        struct tr_unsent *unsent = calloc(1, sizeof(*unsent));
        if (!unsent)
                return tr_error_origin(-ENOMEM);
        unsent->loop = loop;
        unsent->send = send;
        tr_work_init(&unsent->start, on_start);
        tr_lock_init(&unsent->lock);
        tr_list_init(&unsent->entries);
        unsent->tick = evtimer_new(tr_loop_base(loop), on_tick, unsent);
        if (!unsent->tick) {
                tr_unsent_free(unsent);
                return tr_error_origin(-ENOMEM);
        }
        *ret_unsent = unsent;
        return 0;
}

void tr_unsent_free(struct tr_unsent *unsent) {
        if (!unsent)
                return;
        tr_loop_forget(unsent->loop, &unsent->start);
        if (unsent->tick)
                event_free(unsent->tick);
        tr_lock_deinit(&unsent->lock);
        free(unsent);
}

void tr_unsent_add(struct tr_unsent *unsent, struct tr_unsent_entry *entry) {
        tr_lock_acquire(&unsent->lock);
        entry->listed = true;
        tr_list_append(&unsent->entries, &entry->link);
        bool start = !unsent->ticking;
        unsent->ticking = true;
        tr_lock_release(&unsent->lock);
        if (start)
                tr_loop_post(unsent->loop, &unsent->start);
}

bool tr_unsent_remove(struct tr_unsent *unsent, struct tr_unsent_entry *entry) {
        tr_lock_acquire(&unsent->lock);
        bool listed = !tr_list_is_empty(&entry->link);
        tr_list_unlink(&entry->link);
        tr_lock_release(&unsent->lock);
        entry->listed = false;
        return listed;
}
