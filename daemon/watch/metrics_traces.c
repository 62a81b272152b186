/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of traces. */
#include "daemon/io/traces.h"
#include "daemon/watch/exposition.h"
#include "daemon/watch/metrics.h"
#include "daemon/watch/trace_file.h"

void tr_metrics_traces(const struct tr_watched *watched, struct tr_exposition *to) {
        static const struct tr_family spans = { "troupe_spans", TR_FAMILY_COUNTER, NULL, "Calls of components that have ended." };
        static const struct tr_family dropped = { "troupe_spans_dropped", TR_FAMILY_COUNTER, NULL,
                                                  "Of those, the ones that were not written to trace.file." };
        tr_exposition_family(to, &spans);
        tr_exposition_number(to, NULL, 0, tr_traces_last(watched->traces));
        tr_exposition_family(to, &dropped);
        tr_exposition_number(to, NULL, 0, tr_trace_file_dropped(watched->trace_file));
}
