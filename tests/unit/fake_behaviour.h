/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FAKE_BEHAVIOUR_H
#define TESTS_FAKE_BEHAVIOUR_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "daemon/core/actor.h"

/*
 * A behaviour in C for tests of core and io, and an asker that collects outcomes.
 *
 * Handlers: `echo` answers its arguments' bytes (the first argument, where it is given one), `count` adds one and answers the sum, `nothing` answers nil, `large` a long string,
 * `fault` faults, `hold` answers nothing until `release`, `block` posts `entered` and waits for `go` (a kill gets it out), `stuck` the
 * same but deaf to kills. Everything else is no-such-handler. An actor named "broken" fails to open, "slow-init" holds its init
 * until released by an answer, "bad-init" faults in it, "stuck-init" waits for `go` in it, deaf to kills.
 */
#define FAKE_LARGE_BYTES 100000

struct fake_shared {
        sem_t entered;
        sem_t go;
        _Atomic int opened;
        _Atomic int freed;
        _Atomic int closed;
        _Atomic int reported;
};

void fake_shared_init(struct fake_shared *shared);

extern const struct tr_behaviour fake_behaviour;

/* Outcomes, in the order they came. */
struct fake_outcome {
        uint64_t id;
        bool resolved;
        enum tr_code code;
        enum tr_ran ran;
        uint8_t value[16];
        size_t bytes;
};

#define FAKE_OUTCOMES_MAX 70000

struct fake_asker {
        struct tr_asker asker;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        size_t count;
        _Atomic int refs; /* messages that still point here */
        struct fake_outcome *outcomes;
};

void fake_asker_init(struct fake_asker *asker);
void fake_asker_deinit(struct fake_asker *asker);
/* Waits until there are so many. */
void fake_asker_wait(struct fake_asker *asker, size_t count);

/* A message for a handler with one integer argument; asker may be NULL. */
struct tr_message *fake_message(struct fake_asker *asker, uint64_t id, const char *handler, int argument);

/* A system whose loop is the test's own thread. */
struct fake_system {
        struct tr_system *system;
        struct fake_shared shared;
        sem_t woken;
        _Atomic int events[TR_EVENT_SLOW + 1];
        _Atomic int refused;
};

void fake_system_init(struct fake_system *fake, uint32_t actors_max);
/* Ends the daemon's session, waits for all threads, and frees it. */
void fake_system_deinit(struct fake_system *fake);
/* Plays the loop thread until the condition says so. */
void fake_system_run_until(struct fake_system *fake, bool (*condition)(void *userdata), void *userdata);
/* Plays it until so many outcomes are there. */
void fake_system_run_until_outcomes(struct fake_system *fake, struct fake_asker *asker, size_t count);

/* Starts an actor in the daemon's session and waits until it runs. */
struct tr_target *fake_spawn(struct fake_system *fake, const char *actor, const struct tr_actor_options *options);

#endif
