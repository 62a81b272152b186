/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_RETRY_H
#define TR_CORE_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/clock.h"
#include "daemon/core/backoff.h"

struct tr_failure;
struct tr_target;

/*
 * Starting again what has ended: backoff with the clock and the randomness that it has not, and what is said of a place in which nothing
 * lasts. Workers, replicas and processes are started again by it.
 */
#define TR_RETRY_MIN_NS (200 * TR_NS_PER_MS)
#define TR_RETRY_MAX_NS (10 * TR_NS_PER_S)
#define TR_RETRY_RESET_NS (10 * TR_NS_PER_S)

/* What ran since began_ns has ended now, by a failure or by itself: the pause until it is started again. Whoever owns the backoff
 * guards it. */
uint64_t tr_retry_pause_ns(struct tr_backoff *backoff, uint64_t began_ns, bool failed);
/* It has failed so often that it is tried once a minute: that is logged, and an event of the component. `what` is it for people: "replica".
 * No lock held; the failure is borrowed. */
void tr_retry_tell_given_up(struct tr_target *component, const char *what, uint32_t number, const struct tr_failure *failure);

#endif
