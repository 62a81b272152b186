/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted of a component. */
#include "daemon/core/component_figures.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/component.h"
#include "daemon/core/invocation.h"
#include "daemon/core/replica.h"

struct tr_component_figures *tr_component_figures_of(struct tr_component *component, const char *operation)
        TR_REQUIRES(component->lock) {
        uint32_t line = tr_component_line_locked(component, operation);
        return &component->figures[line == UINT32_MAX ? component->manifest->operations_count : line];
}

void tr_component_count_refused(struct tr_component *component, const char *operation, const struct tr_failure *failure) {
        tr_lock_acquire(&component->lock);
        struct tr_component_figures *figures = tr_component_figures_of(component, operation);
        atomic_fetch_add_explicit(&figures->refused_total[failure->code], 1, memory_order_relaxed);
        tr_lock_release(&component->lock);
}

/* Which replicas serve which operations, and what they have waiting. */

static bool serves(const struct tr_replica *replica, const char *operation) {
        char *const *at = replica->operations;
        while (at && *at && strcmp(*at, operation) != 0)
                at++;
        return !at || *at;
}

static void add_replicas_locked(const struct tr_component *component, struct tr_component_sums *sums) TR_REQUIRES(component->lock) {
        const struct tr_manifest *manifest = component->manifest;
        const struct tr_replica *replica;
        const struct tr_message *message;
        tr_list_for_each(replica, &component->replicas, link) {
                for (uint32_t i = 0; replica->state == TR_REPLICA_HOLDING && i < manifest->operations_count; i++)
                        sums[i].running += serves(replica, manifest->operations[i].name);
                tr_list_for_each(message, &replica->queue, link) {
                        uint32_t line = tr_component_line_locked(component, message->invocation->operation->name);
                        sums[line == UINT32_MAX ? manifest->operations_count : line].waiting++;
                }
        }
}

/* Those that are put aside are counted where they will be again. */
static void add_aside_locked(const struct tr_component *component, struct tr_component_sums *sums) TR_REQUIRES(component->lock) {
        const struct tr_message *message;
        for (unsigned int i = 0; i < TR_ENTITY_TURN_BUCKETS; i++)
                for (const struct tr_entity_turn *turn = component->turns.buckets[i]; turn; turn = turn->next)
                        tr_list_for_each(message, &turn->waiting, link) {
                                uint32_t line = tr_component_line_locked(component, message->invocation->operation->name);
                                sums[line == UINT32_MAX ? component->manifest->operations_count : line].waiting++;
                        }
}

static void add_counts(const struct tr_component_figures *figures, struct tr_component_sums *sums) {
        /* relaxed: figures for people */
        sums->calls = atomic_load_explicit(&figures->calls_total, memory_order_relaxed);
        sums->faults = atomic_load_explicit(&figures->faults_total, memory_order_relaxed);
        sums->redelivered = atomic_load_explicit(&figures->redelivered_total, memory_order_relaxed);
        sums->late = atomic_load_explicit(&figures->late_total, memory_order_relaxed);
        for (unsigned int i = 0; i < TR_CODES_COUNT; i++)
                sums->refused[i] = atomic_load_explicit(&figures->refused_total[i], memory_order_relaxed);
        tr_times_sum_up(&sums->wait, &figures->wait);
        tr_times_sum_up(&sums->run, &figures->run);
}

static void sum_up_locked(const struct tr_component *component, struct tr_component_sums *sums) TR_REQUIRES(component->lock) {
        const struct tr_manifest *manifest = component->manifest;
        const struct tr_message *message;
        uint32_t size = (manifest->module ? manifest->replicas.count : 0) + (manifest->process ? manifest->process->replicas.count : 0);
        for (uint32_t i = 0; i <= manifest->operations_count; i++) {
                add_counts(&component->figures[i], &sums[i]);
                sums[i].size = size;
                sums[i].restarts = component->restarts_total;
                if (i == manifest->operations_count)
                        break;
                sums[i].operation = manifest->operations[i].name;
                tr_list_for_each(message, &component->lines[i].calls, link)
                        sums[i].waiting++;
        }
        add_replicas_locked(component, sums);
        add_aside_locked(component, sums);
}

int tr_component_sum_figures(struct tr_component *component, struct tr_manifest **ret_manifest, struct tr_component_sums **ret_sums) {
        tr_lock_acquire(&component->lock);
        struct tr_component_sums *sums = calloc(component->manifest->operations_count + 1, sizeof(*sums));
        if (sums) {
                sum_up_locked(component, sums);
                *ret_manifest = tr_manifest_ref(component->manifest);
                *ret_sums = sums;
        }
        tr_lock_release(&component->lock);
        return sums ? 0 : tr_error_origin(-ENOMEM);
}
