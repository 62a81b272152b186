/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_COMPONENT_FIGURES_H
#define TR_CORE_COMPONENT_FIGURES_H

#include <stdatomic.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/core/times.h"
#include "proto/code.h"

struct tr_component;
struct tr_failure;
struct tr_manifest;

/*
 * What is counted of a component, for people. Each operation of the manifest in effect has figures of its own; calls of
 * operations that it has not, or has no more, are counted together, behind them.
 */

/* Relaxed; all but late_total and redelivered_total are added to under the component's lock. */
struct tr_component_figures {
        _Atomic uint64_t calls_total;  /* accepted */
        _Atomic uint64_t faults_total; /* answered with a fault */
        _Atomic uint64_t redelivered_total;
        _Atomic uint64_t late_total; /* answers that settled nothing */
        _Atomic uint64_t refused_total[TR_CODES_COUNT]; /* ended with an error that is no fault, accepted or not */
        struct tr_times wait; /* of those that a replica had: until the delivery that answered */
        struct tr_times run;
};

/* Those of one operation, at one moment. */
struct tr_component_sums {
        const char *operation; /* in the manifest; NULL: those that it has not */
        uint64_t size;         /* replicas that the daemon is to run; each serves every operation */
        uint64_t running;      /* those that take its calls, connections among them */
        uint64_t waiting;
        uint64_t calls;
        uint64_t faults;
        uint64_t restarts; /* replicas that the daemon has started in the place of others */
        uint64_t redelivered;
        uint64_t late;
        uint64_t refused[TR_CODES_COUNT];
        struct tr_times_sum wait;
        struct tr_times_sum run;
};

/*
 * All of them, in the manifest's order, and behind them those that it has not: (*ret_manifest)->operations_count + 1. The
 * caller frees the array, and has a reference to the manifest. 0 or -ENOMEM. Any thread, no lock held.
 */
TR_MUST_CHECK int tr_component_sum_figures(struct tr_component *component, struct tr_manifest **ret_manifest,
                                           struct tr_component_sums **ret_sums);

/* Between the files of core that make up a component. */

/* It has refused a call of that operation, which it need not have. No lock held. */
void tr_component_count_refused(struct tr_component *component, const char *operation, const struct tr_failure *failure);
/* The figures of an operation, of the manifest in effect; the last ones, where it is none of that. The component's lock is held. */
struct tr_component_figures *tr_component_figures_of(struct tr_component *component, const char *operation);

#endif
