/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_BACKOFF_H
#define TR_CORE_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How long to wait before something that ended is started again: a pause that doubles from `min` to `max`, 20 % jitter,
 * and is `min` again after `reset` of running without a fault. Ten failures within a minute, and it is tried once a
 * minute only, until it has run for `reset`.
 *
 * Arithmetic only: no clock, no randomness, no lock. Who owns it has those.
 */
#define TR_BACKOFF_FAILURES 10

struct tr_backoff {
        uint64_t min_ns;
        uint64_t max_ns;
        uint64_t reset_ns;
        uint64_t next_ns;                        /* the next pause, without jitter */
        uint64_t failed_ns[TR_BACKOFF_FAILURES]; /* when the last ones were, a ring */
        uint32_t failures;                       /* ever */
        bool slowed;                             /* tried once a minute only */
};

void tr_backoff_init(struct tr_backoff *backoff, uint64_t min_ns, uint64_t max_ns, uint64_t reset_ns);
/* It failed at now_ns, having run since began_ns. `random` is any 32 bits. Answers the pause. */
uint64_t tr_backoff_failed(struct tr_backoff *backoff, uint64_t began_ns, uint64_t now_ns, uint32_t random);
/* It ended by itself, without a fault. Answers the pause. */
uint64_t tr_backoff_ended(struct tr_backoff *backoff, uint64_t began_ns, uint64_t now_ns, uint32_t random);

/* Of something that has failed so often (1: once) and has no other memory than that: min, doubled each time, up to max. */
uint64_t tr_backoff_pause_ns(uint64_t min_ns, uint64_t max_ns, uint32_t failures, uint32_t random);

#endif
