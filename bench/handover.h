/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_BENCH_HANDOVER_H
#define TR_BENCH_HANDOVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a message that is handed over. */
#define BENCH_HANDOVER_MAX 256

/*
 * One message from one thread to one other: the least that any design with a
 * thread behind the reader has to do, and so the peer of an ask. With `spins` the
 * receiver waits as an actor does; without, it parks at once.
 */
struct bench_handover {
        pthread_mutex_t mutex;
        pthread_cond_t wake;
        bool parked;       /* the receiver waits on `wake`; guarded by the mutex */
        _Atomic bool full; /* set under the mutex, looked at without it by a receiver that spins */
        bool spins;
        uint64_t last_ns; /* the receiver's: when it last had a message */
        size_t bytes;
        uint8_t data[BENCH_HANDOVER_MAX];
};

void bench_handover_init(struct bench_handover *handover, bool spins);
/* The last message must have been taken. */
void bench_handover_put(struct bench_handover *handover, const void *data, size_t bytes);
/* Waits; answers how many bytes were put into `data` (BENCH_HANDOVER_MAX of room). */
size_t bench_handover_take(struct bench_handover *handover, void *data);

#endif
