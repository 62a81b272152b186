/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/retry.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/base/log.h"
#include "daemon/base/random.h"
#include "daemon/core/system.h"

uint64_t tr_retry_pause_ns(struct tr_backoff *backoff, uint64_t began_ns, bool failed) {
        uint32_t random = 0;
        /* without randomness the jitter is the same for all, which is no reason not to start them */
        (void)!tr_random_bytes(&random, sizeof(random));
        uint64_t now_ns = tr_clock_ns();
        return failed ? tr_backoff_failed(backoff, began_ns, now_ns, random) : tr_backoff_ended(backoff, began_ns, now_ns, random);
}

void tr_retry_tell_given_up(struct tr_target *component, const char *what, uint32_t number, const struct tr_failure *failure) {
        char name[16];
        snprintf(name, sizeof(name), "%" PRIu32, number);
        tr_log(TR_LOG_ERROR, "component %s: %s %s failed %d times within a minute and is tried once a minute", component->label, what,
               name, TR_BACKOFF_FAILURES);
        tr_system_tell(component->system, &(struct tr_news){
                                                  .event = TR_EVENT_SLOT_GIVEN_UP,
                                                  .target = component,
                                                  .failure = failure,
                                                  .slot = name,
                                          });
}
