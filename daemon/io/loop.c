/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop. Other threads reach it through one eventfd: they set a flag or put work into a list, and write to it only
 * where nobody has since the loop last looked, so that many who want something cost one wake.
 *
 * The flag is cleared before the list is taken: what is posted after that writes again, and what was posted before is
 * in the list.
 */
#include "config.h"

#include "daemon/io/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/lock.h"
#include "daemon/base/thread.h"
#include "daemon/core/system.h"

struct tr_loop {
        struct event_base *base;
        struct event *wake_event;
        struct event *timer_event;
        int wake_fd;
        struct tr_system *system;
        _Atomic bool woken;  /* written to since the loop last looked */
        struct tr_lock lock; /* nothing else is acquired under it */
        struct tr_list work TR_GUARDED_BY(lock);
        /* What the present wake runs; what is posted meanwhile has its turn in the next. */
        struct tr_list round TR_GUARDED_BY(lock);
};

/* Fires what is due and arms the timer for what comes next. */
static void loop_run_due(struct tr_loop *loop) {
        if (!loop->system)
                return;
        uint64_t next_ns = tr_system_run_due(loop->system, tr_clock_ns());
        if (next_ns == TR_NEVER) {
                event_del(loop->timer_event);
                return;
        }
        uint64_t now_ns = tr_clock_ns();
        /* Rounded up: a timer that fires early would find nothing due and be armed again. */
        uint64_t after_us = next_ns > now_ns ? (next_ns - now_ns + TR_NS_PER_US - 1) / TR_NS_PER_US : 0;
        struct timeval after = { .tv_sec = (time_t)(after_us / 1000000), .tv_usec = (suseconds_t)(after_us % 1000000) };
        event_add(loop->timer_event, &after);
}

static void loop_begin_round(struct tr_loop *loop) {
        tr_lock_acquire(&loop->lock);
        tr_list_splice(&loop->round, &loop->work);
        tr_lock_release(&loop->lock);
}

static struct tr_work *loop_take_work(struct tr_loop *loop) {
        tr_lock_acquire(&loop->lock);
        struct tr_work *work = tr_list_first(&loop->round, struct tr_work, link);
        if (work)
                tr_list_unlink(&work->link);
        tr_lock_release(&loop->lock);
        return work;
}

static void on_wake(evutil_socket_t fd, short what, void *userdata) {
        struct tr_loop *loop = userdata;
        uint64_t count;
        /* A failure leaves the event ready, and the next round comes here again. */
        if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
                tr_error_origin(-errno);
        /* seq_cst, like the exchange in loop_wake(): the list and the system are looked at after the flag is down */
        atomic_store(&loop->woken, false);

        loop_begin_round(loop);
        for (struct tr_work *work; (work = loop_take_work(loop));)
                work->run(work);
        loop_run_due(loop);
}

static void on_timer(evutil_socket_t fd, short what, void *userdata) {
        loop_run_due(userdata);
}

static struct event_base *loop_base_new(void) {
        struct event_config *config = event_config_new();
        if (!config)
                return NULL;
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
        event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV);
        struct event_base *base = event_base_new_with_config(config);
        event_config_free(config);
        return base;
}

int tr_loop_new(struct tr_loop **ret_loop) {
        struct tr_loop *loop = calloc(1, sizeof(*loop));
        if (!loop)
                return tr_error_origin(-ENOMEM);
        tr_lock_init(&loop->lock);
        tr_list_init(&loop->work);
        tr_list_init(&loop->round);

        loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (loop->wake_fd < 0) {
                int r = tr_error_origin(-errno);
                tr_loop_free(loop);
                return r;
        }
        loop->base = loop_base_new();
        if (loop->base) {
                loop->wake_event = event_new(loop->base, loop->wake_fd, EV_READ | EV_PERSIST, on_wake, loop);
                loop->timer_event = evtimer_new(loop->base, on_timer, loop);
        }
        if (!loop->wake_event || !loop->timer_event || event_add(loop->wake_event, NULL) < 0) {
                tr_loop_free(loop);
                return tr_error_origin(-ENOMEM);
        }
        *ret_loop = loop;
        return 0;
}

void tr_loop_free(struct tr_loop *loop) {
        if (!loop)
                return;
        if (loop->timer_event)
                event_free(loop->timer_event);
        if (loop->wake_event)
                event_free(loop->wake_event);
        if (loop->base)
                event_base_free(loop->base);
        if (loop->wake_fd >= 0)
                close(loop->wake_fd);
        tr_lock_deinit(&loop->lock);
        free(loop);
}

void tr_loop_attach(struct tr_loop *loop, struct tr_system *system) {
        loop->system = system;
        if (system)
                tr_loop_wake(loop);
}

struct event_base *tr_loop_base(struct tr_loop *loop) {
        return loop->base;
}

bool tr_loop_has_more(const struct tr_loop *loop) {
        return event_base_get_num_events(loop->base, EVENT_BASE_COUNT_ACTIVE) > 0;
}

void tr_loop_wake(struct tr_loop *loop) {
        if (atomic_exchange(&loop->woken, true))
                return;
        uint64_t one = 1;
        /* It can only fail where the counter is full, and then the loop has a wake to come. */
        if (write(loop->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
                tr_error_origin(-errno);
}

bool tr_loop_post(struct tr_loop *loop, struct tr_work *work) {
        tr_lock_acquire(&loop->lock);
        bool posted = tr_list_is_empty(&work->link);
        if (posted)
                tr_list_append(&loop->work, &work->link);
        tr_lock_release(&loop->lock);
        if (posted)
                tr_loop_wake(loop);
        return posted;
}

bool tr_loop_forget(struct tr_loop *loop, struct tr_work *work) {
        tr_lock_acquire(&loop->lock);
        bool posted = !tr_list_is_empty(&work->link);
        tr_list_unlink(&work->link);
        tr_lock_release(&loop->lock);
        return posted;
}

int tr_loop_run(struct tr_loop *loop) {
        tr_thread_enter(TR_THREAD_LOOP, "loop");
        if (event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY) < 0)
                return tr_error_origin(-EIO);
        return 0;
}

void tr_loop_stop(struct tr_loop *loop) {
        event_base_loopbreak(loop->base);
}
