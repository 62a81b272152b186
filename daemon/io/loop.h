/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_LOOP_H
#define TR_IO_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/base/list.h"

struct event_base;
struct tr_loop;
struct tr_system;

/*
 * The loop thread's loop: a libevent base, the system's timers, and work that other threads post. libevent is used by
 * the loop thread alone and takes no locks; all that other threads may do here is said to be for any thread.
 */

/* Something to do on the loop thread, part of its user's structure. The link is the loop's. */
struct tr_work {
        struct tr_list link;
        void (*run)(struct tr_work *work);
};

static inline void tr_work_init(struct tr_work *work, void (*run)(struct tr_work *work)) {
        tr_list_init(&work->link);
        work->run = run;
}

/* 0 or a negative errno. */
TR_MUST_CHECK int tr_loop_new(struct tr_loop **ret_loop);
/* NULL is fine. Posted work that did not run is forgotten. */
void tr_loop_free(struct tr_loop *loop);
/* Whose timers it runs from now on; NULL: nobody's. The system's hooks.wake has to end in tr_loop_wake(). */
void tr_loop_attach(struct tr_loop *loop, struct tr_system *system);
/* For events of its users, on the loop thread. */
struct event_base *tr_loop_base(struct tr_loop *loop);
/* From an event's callback: whether other events are to be handled before the loop waits again. */
bool tr_loop_has_more(const struct tr_loop *loop);

/* Any thread. The system's timers are looked at again. */
void tr_loop_wake(struct tr_loop *loop);
/* Any thread. Runs the work once, soon; nothing (false) where it is posted and has not begun to run yet. */
bool tr_loop_post(struct tr_loop *loop, struct tr_work *work);
/* Loop thread. Posted work is not run; answers whether it was posted. */
bool tr_loop_forget(struct tr_loop *loop, struct tr_work *work);

/* The calling thread is the loop thread until tr_loop_stop(). 0 or a negative errno. */
TR_MUST_CHECK int tr_loop_run(struct tr_loop *loop);
/* Loop thread: tr_loop_run() returns when the present round is over. */
void tr_loop_stop(struct tr_loop *loop);

#endif
