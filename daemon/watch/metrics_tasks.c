/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of tasks, by the component that they are for, which need not be declared.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/core/component.h"
#include "daemon/core/store.h"
#include "daemon/core/system.h"
#include "daemon/watch/exposition.h"
#include "daemon/watch/metrics.h"

static void write_counts(void *userdata, const struct tr_store_counts *counts) {
        const struct {
                const char *state;
                uint64_t count;
        } states[] = { { "waiting", counts->waiting }, { "running", counts->running }, { "parked", counts->parked } };
        for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
                const struct tr_label labels[] = { { "component", counts->component }, { "state", states[i].state } };
                tr_exposition_number(userdata, labels, 2, states[i].count);
        }
}

static void write_expired(struct tr_system *system, struct tr_exposition *to) {
        static const struct tr_family family = { "troupe_component_tasks_expired", TR_FAMILY_COUNTER, NULL,
                                                 "Tasks that were dropped, since it was too late for them." };
        struct tr_component **components;
        size_t count;
        if (tr_components_list(system, &components, &count) < 0) {
                to->text.error = -ENOMEM;
                return;
        }
        tr_exposition_family(to, &family);
        for (size_t i = 0; i < count; i++) {
                const struct tr_label label = { "component", components[i]->target.label };
                tr_exposition_number(to, &label, 1, atomic_load_explicit(&components[i]->tasks.expired_total, memory_order_relaxed));
                tr_component_unref(components[i]);
        }
        free(components);
}

void tr_metrics_tasks(const struct tr_watched *watched, struct tr_exposition *to) {
        static const struct tr_family family = { "troupe_component_tasks", TR_FAMILY_GAUGE, NULL, "Tasks that are kept." };
        struct tr_store *store = watched->system->store;
        tr_exposition_family(to, &family);
        if (store)
                tr_store_visit_counts(store, write_counts, to);
        write_expired(watched->system, to);
}
