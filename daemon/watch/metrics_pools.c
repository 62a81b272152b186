/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of pools, by the pool's name. Names need not be unique, and no two samples may have the same labels: pools of one name
 * are one here, and what they have is added up.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/pool.h"
#include "daemon/core/system.h"
#include "daemon/watch/exposition.h"
#include "daemon/watch/metrics.h"

/* All pools of one name. */
struct entry {
        const char *name; /* borrowed from the first of them */
        struct tr_pool_figures figures;
        uint64_t *depths; /* by slot */
        uint32_t slots;
};

struct entries {
        struct tr_target **targets; /* the pools, each a reference, by name */
        size_t targets_count;
        struct entry *list;
        size_t count;
};

static int compare_names(const void *a, const void *b) {
        return strcmp((*(struct tr_target *const *)a)->label, (*(struct tr_target *const *)b)->label);
}

/* All pools, by name. 0 or a negative errno. */
static int list_pools(struct tr_system *system, struct entries *entries) {
        struct tr_target **targets;
        size_t count, pools = 0;
        int r = tr_registry_list(&system->registry, &targets, &count);
        if (r < 0)
                return tr_error_fold(r);
        for (size_t i = 0; i < count; i++) {
                if (tr_pool_of(targets[i]))
                        targets[pools++] = targets[i];
                else
                        tr_target_unref(targets[i]);
        }
        qsort(targets, pools, sizeof(struct tr_target *), compare_names);
        entries->targets = targets;
        entries->targets_count = pools;
        return 0;
}

static int entry_add(struct entry *entry, struct tr_pool *pool) {
        if (pool->workers > entry->slots) {
                uint64_t *depths = reallocarray(entry->depths, pool->workers, sizeof(*depths));
                if (!depths)
                        return tr_error_origin(-ENOMEM);
                memset(depths + entry->slots, 0, (pool->workers - entry->slots) * sizeof(*depths));
                entry->depths = depths;
                entry->slots = pool->workers;
        }
        tr_pool_add_figures(pool, &entry->figures, entry->depths);
        return 0;
}

static int entries_init(struct entries *entries, struct tr_system *system) {
        int r = list_pools(system, entries);
        if (r < 0)
                return tr_error_fold(r);
        entries->list = calloc(entries->targets_count + 1, sizeof(*entries->list));
        if (!entries->list)
                return tr_error_origin(-ENOMEM);
        for (size_t i = 0; i < entries->targets_count && r == 0; i++) {
                const char *name = entries->targets[i]->label;
                bool is_another = entries->count == 0 || strcmp(entries->list[entries->count - 1].name, name) != 0;
                entries->count += is_another;
                struct entry *entry = &entries->list[entries->count - 1];
                entry->name = name;
                r = entry_add(entry, (struct tr_pool *)entries->targets[i]);
        }
        return tr_error_fold(r);
}

static void entries_deinit(struct entries *entries) {
        for (size_t i = 0; i < entries->count; i++)
                free(entries->list[i].depths);
        free(entries->list);
        for (size_t i = 0; i < entries->targets_count; i++)
                tr_target_unref(entries->targets[i]);
        free(entries->targets);
}

/* What is one whole number, or one histogram, of each pool. */
static const struct {
        struct tr_family family;
        size_t offset; /* in struct tr_pool_figures */
} families[] = {
        { { "troupe_pool_size", TR_FAMILY_GAUGE, NULL, "Workers that the pool was started with." },
          offsetof(struct tr_pool_figures, size) },
        { { "troupe_pool_running", TR_FAMILY_GAUGE, NULL, "Workers that run." }, offsetof(struct tr_pool_figures, running) },
        { { "troupe_pool_given_up", TR_FAMILY_GAUGE, NULL,
            "Workers that failed so often that they are tried once a minute only." },
          offsetof(struct tr_pool_figures, given_up) },
        { { "troupe_pool_queue_depth", TR_FAMILY_GAUGE, NULL, "Messages in the pool's own queue." },
          offsetof(struct tr_pool_figures, queued) },
        { { "troupe_pool_messages", TR_FAMILY_COUNTER, NULL, "Messages that the pool has taken." },
          offsetof(struct tr_pool_figures, messages) },
        { { "troupe_pool_faults", TR_FAMILY_COUNTER, NULL, "Workers that ended otherwise than orderly." },
          offsetof(struct tr_pool_figures, faults) },
        { { "troupe_pool_restarts", TR_FAMILY_COUNTER, NULL, "Workers that were started in the place of another." },
          offsetof(struct tr_pool_figures, restarts) },
        { { "troupe_pool_wait_seconds", TR_FAMILY_HISTOGRAM, "seconds",
            "From a message's acceptance by the pool until its handler begins." },
          offsetof(struct tr_pool_figures, wait) },
        { { "troupe_pool_run_seconds", TR_FAMILY_HISTOGRAM, "seconds",
            "From the beginning of a message's handler until it has ended, waiting included." },
          offsetof(struct tr_pool_figures, run) },
};

static void write_family(struct tr_exposition *to, const struct tr_family *family, size_t offset,
                         const struct entries *entries) {
        tr_exposition_family(to, family);
        for (size_t i = 0; i < entries->count; i++) {
                const struct tr_label label = { "pool", entries->list[i].name };
                const void *figure = (const char *)&entries->list[i].figures + offset;
                if (family->type == TR_FAMILY_HISTOGRAM)
                        tr_exposition_times(to, &label, 1, figure);
                else
                        tr_exposition_number(to, &label, 1, *(const uint64_t *)figure);
        }
}

static void write_depths(struct tr_exposition *to, const struct entries *entries) {
        static const struct tr_family family = { "troupe_pool_mailbox_depth", TR_FAMILY_GAUGE, NULL,
                                                 "Messages that wait in the mailbox of the worker in a slot." };
        char slot[32];
        tr_exposition_family(to, &family);
        for (size_t i = 0; i < entries->count; i++) {
                const struct entry *entry = &entries->list[i];
                for (uint32_t at = 0; at < entry->slots; at++) {
                        const struct tr_label labels[] = { { "pool", entry->name }, { "worker", slot } };
                        snprintf(slot, sizeof(slot), "w-%" PRIu32, at + 1);
                        tr_exposition_number(to, labels, 2, entry->depths[at]);
                }
        }
}

void tr_metrics_pools(const struct tr_watched *watched, struct tr_exposition *to) {
        struct entries entries = { 0 };
        if (entries_init(&entries, watched->system) < 0) {
                to->text.error = -ENOMEM;
        } else {
                for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
                        write_family(to, &families[i].family, families[i].offset, &entries);
                write_depths(to, &entries);
        }
        entries_deinit(&entries);
}
