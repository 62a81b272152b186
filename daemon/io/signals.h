/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_SIGNALS_H
#define TR_IO_SIGNALS_H

#include "daemon/base/error.h"

struct tr_loop;
struct tr_signals;

/*
 * SIGTERM, SIGINT and SIGHUP as events of the loop. All other threads block them, so they are the loop thread's.
 * One object per process at a time.
 */

/* 0 or a negative errno. */
TR_MUST_CHECK int tr_signals_new(struct tr_loop *loop, void (*on_signal)(void *userdata, int signal), void *userdata,
                                 struct tr_signals **ret_signals);
/* The signals do what they did before. NULL is fine. */
void tr_signals_free(struct tr_signals *signals);

#endif
