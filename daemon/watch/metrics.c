/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/watch/metrics.h"

#include "daemon/watch/exposition.h"

static void (*const parts[])(const struct tr_watched *watched, struct tr_exposition *to) = {
        tr_metrics_daemon,
        tr_metrics_pools,
        tr_metrics_components,
        tr_metrics_tasks,
        tr_metrics_traces,
};

void tr_metrics_write(const struct tr_watched *watched, struct tr_writer *text) {
        struct tr_exposition to = { .text = *text };
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
                parts[i](watched, &to);
        tr_exposition_end(&to);
        *text = to.text;
}
