/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses before a restart. The jitter keeps what failed together from coming back together. */
#include "daemon/core/backoff.h"

#include "daemon/base/clock.h"

#define WINDOW_NS (60 * TR_NS_PER_S)
#define SLOWED_NS (60 * TR_NS_PER_S)

void tr_backoff_init(struct tr_backoff *backoff, uint64_t min_ns, uint64_t max_ns, uint64_t reset_ns) {
        *backoff = (struct tr_backoff){ .min_ns = min_ns, .max_ns = max_ns, .reset_ns = reset_ns, .next_ns = min_ns };
}

/* Four fifths to six fifths of it. */
static uint64_t jittered(uint64_t pause_ns, uint32_t random) {
        uint64_t fifth_ns = pause_ns / 5;

        return pause_ns - fifth_ns + (uint64_t)((double)(2 * fifth_ns) * random / UINT32_MAX);
}

static void forgive(struct tr_backoff *backoff, uint64_t began_ns, uint64_t now_ns) {
        if (now_ns - began_ns < backoff->reset_ns)
                return;
        backoff->next_ns = backoff->min_ns;
        backoff->slowed = false;
        backoff->failures = 0;
}

uint64_t tr_backoff_failed(struct tr_backoff *backoff, uint64_t began_ns, uint64_t now_ns, uint32_t random) {
        uint64_t *slot, pause_ns;

        forgive(backoff, began_ns, now_ns);
        /* the slot that comes next holds the oldest of the last ten, of which the present one is the last */
        backoff->failed_ns[backoff->failures % TR_BACKOFF_FAILURES] = now_ns;
        backoff->failures++;
        slot = &backoff->failed_ns[backoff->failures % TR_BACKOFF_FAILURES];
        if (backoff->failures >= TR_BACKOFF_FAILURES && now_ns - *slot < WINDOW_NS)
                backoff->slowed = true;
        if (backoff->slowed)
                return SLOWED_NS;

        pause_ns = backoff->next_ns;
        backoff->next_ns = pause_ns > backoff->max_ns / 2 ? backoff->max_ns : 2 * pause_ns;
        return jittered(pause_ns, random);
}

uint64_t tr_backoff_ended(struct tr_backoff *backoff, uint64_t began_ns, uint64_t now_ns, uint32_t random) {
        forgive(backoff, began_ns, now_ns);
        return jittered(backoff->min_ns, random);
}

uint64_t tr_backoff_pause_ns(uint64_t min_ns, uint64_t max_ns, uint32_t failures, uint32_t random) {
        uint64_t pause_ns = min_ns;

        for (uint32_t i = 1; i < failures && pause_ns < max_ns; i++)
                pause_ns = pause_ns > max_ns / 2 ? max_ns : 2 * pause_ns;
        return jittered(pause_ns, random);
}
