/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_COMPONENT_SLOT_H
#define TR_CORE_COMPONENT_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/core/backoff.h"
#include "daemon/core/component.h"
#include "daemon/core/timer.h"

struct tr_staff;

/*
 * The replicas that the daemon starts of a component's module: one in each slot. It is started when the component is declared, and
 * again, after a pause, when it has ended; where the manifest has changed, beside the one that it will follow.
 *
 *      vacant --start--> starting --init has ended, its name is held--> current --end--> vacant (a pause) --> ...
 *
 * Guarded by the component's lock.
 */
struct tr_component_slot {
        struct tr_component *component; /* immutable, as is the number */
        uint32_t number;                /* from 0: which of the manifest's list */
        bool wanted;                    /* the manifest in effect has one of that number */
        bool renew;                     /* its current one is of another manifest, or of an older module */
        bool settled;                   /* some start has ended, well or not */
        struct tr_staff *starting;      /* strong */
        struct tr_staff *current;       /* strong */
        struct tr_backoff backoff;
        uint64_t began_ns;
        uint64_t due_ns;       /* of the timer: one that fires earlier is an older one */
        struct tr_timer timer; /* until the end of a pause, or of the time that init has. While set it holds the component */
};

/* Sees to it that there are so many slots. 0 or -ENOMEM. */
TR_MUST_CHECK int tr_component_make_slots(struct tr_component *component, uint32_t count);
/* The manifest is another one, or its module may be: what is there is replaced one by one, what is missing is started. */
void tr_component_renew_slots(struct tr_component *component);
/* Nothing is started any more. */
void tr_component_stop_slots(struct tr_component *component);
/* For the component's end: it is nobody's any more. */
void tr_component_free_slots(struct tr_component *component);

#endif
