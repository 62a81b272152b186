/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_BASE_LOCK_H
#define TR_BASE_LOCK_H

#include <pthread.h>

/*
 * A mutex that clang's -Wthread-safety understands, and the attributes that go
 * with it. Nobody holds two mailbox or connection locks at once; what may be
 * held together is said where the second one is declared.
 */
#if defined(__clang__)
#define TR_TSA(x) __attribute__((x))
#else
#define TR_TSA(x)
#endif

/* For people only: in C, clang looks members up in guarded_by() before it has seen any (with -fexperimental-late-parse-attributes
 * from 20 on it does not). What it holds is that locks are taken and released in pairs, and where TR_REQUIRES says so. */
#define TR_GUARDED_BY(lock)
#define TR_REQUIRES(lock) TR_TSA(requires_capability(lock))
#define TR_EXCLUDES(lock) TR_TSA(locks_excluded(lock))
#define TR_NO_THREAD_SAFETY TR_TSA(no_thread_safety_analysis)

/* In a loop that waits for another CPU. */
static inline void tr_cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
}

struct TR_TSA(capability("mutex")) tr_lock {
        pthread_mutex_t mutex;
};

/*
 * Looks at a lock that is held, a few microseconds in all, before its waiter sleeps. What is done under these locks is shorter than
 * that; a sleep costs two system calls and, to wake who sleeps, an interrupt of another CPU. (glibc's own adaptive mutex gives up after
 * a fraction of a microsecond when the wait before was short.)
 */
#define TR_LOCK_LOOKS 200

#define TR_LOCK_INIT { PTHREAD_MUTEX_INITIALIZER }

static inline void tr_lock_init(struct tr_lock *lock) {
        lock->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static inline void tr_lock_deinit(struct tr_lock *lock) {
        pthread_mutex_destroy(&lock->mutex);
}

static inline void tr_lock_acquire(struct tr_lock *lock) TR_TSA(acquire_capability(lock)) TR_NO_THREAD_SAFETY {
        for (unsigned int look = 0; look < TR_LOCK_LOOKS; look++) {
                if (pthread_mutex_trylock(&lock->mutex) == 0)
                        return;
                tr_cpu_relax();
        }
        pthread_mutex_lock(&lock->mutex);
}

static inline void tr_lock_release(struct tr_lock *lock) TR_TSA(release_capability(lock)) TR_NO_THREAD_SAFETY {
        pthread_mutex_unlock(&lock->mutex);
}

#endif
