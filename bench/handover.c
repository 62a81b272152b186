/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "bench/handover.h"

#include <assert.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "bench/socket.h"

/*
 * The rule for spinning is the one of mailboxes: up to 50 us, where a message
 * came within the last millisecond, and only with more than one CPU.
 */
#define SPIN_NS 50000u
#define SPIN_AFTER_NS 1000000u

void bench_handover_init(struct bench_handover *handover, bool spins) {
        cpu_set_t cpus;

        *handover = (struct bench_handover){ 0 };
        pthread_mutex_init(&handover->mutex, NULL);
        pthread_cond_init(&handover->wake, NULL);
        if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
                handover->spins = spins && CPU_COUNT(&cpus) > 1;
}

void bench_handover_put(struct bench_handover *handover, const void *data, size_t bytes) {
        bool wake;

        assert(bytes <= sizeof(handover->data));
        pthread_mutex_lock(&handover->mutex);
        assert(!handover->full);
        memcpy(handover->data, data, bytes);
        handover->bytes = bytes;
        /* relaxed: who spins takes the mutex before it looks at the message */
        atomic_store_explicit(&handover->full, true, memory_order_relaxed);
        wake = handover->parked;
        pthread_mutex_unlock(&handover->mutex);
        if (wake)
                pthread_cond_signal(&handover->wake);
}

static void spin(struct bench_handover *handover) {
        uint64_t began_ns = bench_now_ns();

        if (began_ns - handover->last_ns > SPIN_AFTER_NS)
                return;
        while (!atomic_load_explicit(&handover->full, memory_order_relaxed) && bench_now_ns() - began_ns < SPIN_NS)
                ;
}

size_t bench_handover_take(struct bench_handover *handover, void *data) {
        size_t bytes;

        if (handover->spins)
                spin(handover);
        pthread_mutex_lock(&handover->mutex);
        while (!atomic_load_explicit(&handover->full, memory_order_relaxed)) {
                handover->parked = true;
                pthread_cond_wait(&handover->wake, &handover->mutex);
                handover->parked = false;
        }
        bytes = handover->bytes;
        memcpy(data, handover->data, bytes);
        atomic_store_explicit(&handover->full, false, memory_order_relaxed);
        pthread_mutex_unlock(&handover->mutex);
        if (handover->spins)
                handover->last_ns = bench_now_ns();
        return bytes;
}
