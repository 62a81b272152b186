/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the daemon as a whole. */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/core/system.h"
#include "daemon/core/target.h"
#include "daemon/io/feed.h"
#include "daemon/io/server.h"
#include "daemon/watch/exposition.h"
#include "daemon/watch/metrics.h"

static void write_one(struct tr_exposition *to, const struct tr_family *family, uint64_t number) {
        tr_exposition_family(to, family);
        tr_exposition_number(to, NULL, 0, number);
}

static void write_build(struct tr_exposition *to) {
        static const struct tr_family family = { "troupe_build", TR_FAMILY_INFO, NULL, "Which trouped this is." };
        const struct tr_label label = { "version", PACKAGE_VERSION };
        tr_exposition_family(to, &family);
        tr_exposition_number(to, &label, 1, 1);
}

/* As many as there are; without memory for the list the text is none. */
static void write_messages(struct tr_system *system, struct tr_exposition *to) {
        static const struct tr_family family = { "troupe_messages", TR_FAMILY_COUNTER, NULL,
                                                 "Messages that actors have begun, constructors included." };
        struct tr_target **targets;
        size_t count;
        if (tr_registry_list(&system->registry, &targets, &count) < 0) {
                to->text.error = -ENOMEM;
                return;
        }
        write_one(to, &family, tr_system_messages(system, targets, count));
        for (size_t i = 0; i < count; i++)
                tr_target_unref(targets[i]);
        free(targets);
}

/* Codes that have happened: most never do. */
static void write_refused(struct tr_system *system, struct tr_exposition *to) {
        static const struct tr_family family = { "troupe_refused", TR_FAMILY_COUNTER, NULL,
                                                 "Messages and notifications that were refused or dropped." };
        tr_exposition_family(to, &family);
        for (unsigned int i = 0; i < TR_CODES_COUNT; i++) {
                const struct tr_label label = { "code", tr_code_text((enum tr_code)i) };
                uint64_t count = atomic_load_explicit(&system->refused_total[i], memory_order_relaxed);
                if (count > 0)
                        tr_exposition_number(to, &label, 1, count);
        }
}

void tr_metrics_daemon(const struct tr_watched *watched, struct tr_exposition *to) {
        static const struct tr_family actors = { "troupe_actors", TR_FAMILY_GAUGE, NULL,
                                                 "Actors that are there, workers of pools included." };
        static const struct tr_family connections = { "troupe_connections", TR_FAMILY_GAUGE, NULL,
                                                      "Connections to the daemon's socket." };
        static const struct tr_family heap = { "troupe_heap_bytes", TR_FAMILY_GAUGE, "bytes", "Heaps of all actors together." };
        static const struct tr_family dropped = { "troupe_events_dropped", TR_FAMILY_COUNTER, NULL,
                                                  "Events that were left out because they were not read in time." };
        struct tr_system *system = watched->system;
        write_build(to);
        write_one(to, &actors, tr_system_actors(system));
        write_one(to, &connections, tr_server_connections(watched->server));
        write_one(to, &heap, atomic_load_explicit(&system->heap_bytes, memory_order_relaxed));
        write_messages(system, to);
        write_refused(system, to);
        write_one(to, &dropped, tr_feed_dropped(watched->feed));
}
