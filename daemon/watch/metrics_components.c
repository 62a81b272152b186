/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of components, by the component's name and the operation's. Calls of operations that it has not are counted under no
 * operation's name: callers make those up.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/core/component.h"
#include "daemon/core/component_figures.h"
#include "daemon/core/system.h"
#include "daemon/watch/exposition.h"
#include "daemon/watch/metrics.h"

struct entry {
        struct tr_component *component; /* strong */
        struct tr_manifest *manifest;   /* strong */
        struct tr_component_sums *sums; /* one for each of its operations, and one for all others */
};

struct entries {
        struct entry *list; /* by the component's name */
        size_t count;
};

static int compare_entries(const void *a, const void *b) {
        const struct entry *one = a, *other = b;
        return strcmp(one->component->target.label, other->component->target.label);
}

static void entries_deinit(struct entries *entries) {
        for (size_t i = 0; i < entries->count; i++) {
                free(entries->list[i].sums);
                if (entries->list[i].manifest)
                        tr_manifest_unref(entries->list[i].manifest);
                tr_component_unref(entries->list[i].component);
        }
        free(entries->list);
}

static int entries_init(struct entries *entries, struct tr_system *system) {
        struct tr_component **components;
        size_t count;
        int r = tr_components_list(system, &components, &count);
        if (r < 0)
                return tr_error_fold(r);
        entries->list = calloc(count + 1, sizeof(*entries->list));
        if (!entries->list)
                r = tr_error_origin(-ENOMEM);
        for (size_t i = 0; i < count; i++) {
                if (!entries->list) {
                        tr_component_unref(components[i]);
                        continue;
                }
                struct entry *entry = &entries->list[entries->count++];
                entry->component = components[i];
                if (r == 0)
                        r = tr_component_sum_figures(entry->component, &entry->manifest, &entry->sums);
        }
        free(components);
        if (entries->list)
                qsort(entries->list, entries->count, sizeof(*entries->list), compare_entries);
        return tr_error_fold(r);
}

/* What is one number, or one histogram, of each operation. */
static const struct {
        struct tr_family family;
        size_t offset; /* in struct tr_component_sums */
} families[] = {
        { { "troupe_component_size", TR_FAMILY_GAUGE, NULL, "Replicas that the daemon is to run." },
          offsetof(struct tr_component_sums, size) },
        { { "troupe_component_running", TR_FAMILY_GAUGE, NULL, "Replicas that take calls of the operation." },
          offsetof(struct tr_component_sums, running) },
        { { "troupe_component_mailbox_depth", TR_FAMILY_GAUGE, NULL, "Calls that wait for a replica." },
          offsetof(struct tr_component_sums, waiting) },
        { { "troupe_component_messages", TR_FAMILY_COUNTER, NULL, "Calls that the component has accepted." },
          offsetof(struct tr_component_sums, calls) },
        { { "troupe_component_faults", TR_FAMILY_COUNTER, NULL, "Calls that were answered with a fault." },
          offsetof(struct tr_component_sums, faults) },
        { { "troupe_component_restarts", TR_FAMILY_COUNTER, NULL, "Replicas that the daemon has started in the place of another." },
          offsetof(struct tr_component_sums, restarts) },
        { { "troupe_component_redelivered", TR_FAMILY_COUNTER, NULL, "Calls that went to another replica, since one died under them." },
          offsetof(struct tr_component_sums, redelivered) },
        { { "troupe_component_late", TR_FAMILY_COUNTER, NULL, "Answers that came when nobody waited for them any more." },
          offsetof(struct tr_component_sums, late) },
        { { "troupe_component_wait_seconds", TR_FAMILY_HISTOGRAM, "seconds",
            "From a call's acceptance until it goes to the replica that it ends with." },
          offsetof(struct tr_component_sums, wait) },
        { { "troupe_component_run_seconds", TR_FAMILY_HISTOGRAM, "seconds",
            "From there until the call has ended, waiting included." },
          offsetof(struct tr_component_sums, run) },
};

static void write_family(struct tr_exposition *to, const struct tr_family *family, size_t offset, const struct entry *entry) {
        for (const struct tr_component_sums *sums = entry->sums; sums->operation; sums++) {
                const struct tr_label labels[] = { { "component", entry->manifest->name }, { "operation", sums->operation } };
                const void *figure = (const char *)sums + offset;
                if (family->type == TR_FAMILY_HISTOGRAM)
                        tr_exposition_times(to, labels, 2, figure);
                else
                        tr_exposition_number(to, labels, 2, *(const uint64_t *)figure);
        }
}

/* Codes that have happened: most never do. */
static void write_refused(struct tr_exposition *to, const struct entry *entry, const struct tr_component_sums *sums) {
        for (unsigned int i = 0; i < TR_CODES_COUNT; i++) {
                const struct tr_label labels[] = { { "component", entry->manifest->name },
                                                   { "code", tr_code_text((enum tr_code)i) },
                                                   { "operation", sums->operation } };
                if (sums->refused[i] > 0)
                        tr_exposition_number(to, labels, sums->operation ? 3 : 2, sums->refused[i]);
        }
}

static void write_all_refused(struct tr_exposition *to, const struct entries *entries) {
        static const struct tr_family family = { "troupe_component_refused", TR_FAMILY_COUNTER, NULL,
                                                 "Calls that ended with an error other than a fault." };
        tr_exposition_family(to, &family);
        for (size_t i = 0; i < entries->count; i++) {
                const struct entry *entry = &entries->list[i];
                for (uint32_t at = 0; at <= entry->manifest->operations_count; at++)
                        write_refused(to, entry, &entry->sums[at]);
        }
}

void tr_metrics_components(const struct tr_watched *watched, struct tr_exposition *to) {
        struct entries entries = { 0 };
        if (entries_init(&entries, watched->system) < 0) {
                to->text.error = -ENOMEM;
                entries_deinit(&entries);
                return;
        }
        for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
                tr_exposition_family(to, &families[i].family);
                for (size_t at = 0; at < entries.count; at++)
                        write_family(to, &families[i].family, families[i].offset, &entries.list[at]);
        }
        write_all_refused(to, &entries);
        entries_deinit(&entries);
}
