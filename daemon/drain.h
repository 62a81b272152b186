/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_DRAIN_H
#define TR_DRAIN_H

#include <stdint.h>

#include "daemon/base/error.h"

struct tr_drain;
struct tr_loop;
struct tr_system;

/*
 * The end of all actors: no spawn from now on, every actor is stopped orderly and killed after the grace, and those
 * that do not return even then are named. Loop thread.
 */

/* `done` is called once, on the loop thread, when every actor has ended or is stuck. 0 or a negative errno. */
TR_MUST_CHECK int tr_drain_new(struct tr_loop *loop, struct tr_system *system, void (*done)(void *userdata),
                               void *userdata, struct tr_drain **ret_drain);
/* Not begun, or done. NULL is fine. */
void tr_drain_free(struct tr_drain *drain);

/* Begins it. Once. */
void tr_drain_start(struct tr_drain *drain, uint64_t grace_ns);
/* Kills what is left. */
void tr_drain_hurry(struct tr_drain *drain);

#endif
