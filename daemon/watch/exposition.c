/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The form is OpenMetrics 1.0's: https://prometheus.io/docs/specs/om/open_metrics_spec/
 */
#include "daemon/watch/exposition.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/times.h"

#define NS_PER_S 1e9

static void put(struct tr_exposition *to, const char *text) {
        tr_write_raw(&to->text, text, strlen(text));
}

/* What would end a label's value, or a line, is escaped. */
static void put_escaped(struct tr_exposition *to, const char *text) {
        for (; *text; text++) {
                if (*text == '\n')
                        put(to, "\\n");
                else if (*text == '\\' || *text == '"')
                        tr_write_raw(&to->text, (char[]){ '\\', *text }, 2);
                else
                        tr_write_raw(&to->text, text, 1);
        }
}

static void put_meta(struct tr_exposition *to, const char *what, const char *value) {
        put(to, "# ");
        put(to, what);
        put(to, " ");
        put(to, to->family->name);
        put(to, " ");
        put_escaped(to, value);
        put(to, "\n");
}

void tr_exposition_family(struct tr_exposition *to, const struct tr_family *family) {
        static const char *const types[] = {
                [TR_FAMILY_GAUGE] = "gauge",
                [TR_FAMILY_COUNTER] = "counter",
                [TR_FAMILY_HISTOGRAM] = "histogram",
                [TR_FAMILY_INFO] = "info",
        };
        to->family = family;
        put_meta(to, "TYPE", types[family->type]);
        if (family->unit)
                put_meta(to, "UNIT", family->unit);
        put_meta(to, "HELP", family->help);
}

static void put_sample(struct tr_exposition *to, const char *suffix, const struct tr_label *labels, size_t labels_count,
                       const char *number) {
        put(to, to->family->name);
        put(to, suffix);
        for (size_t i = 0; i < labels_count; i++) {
                put(to, i == 0 ? "{" : ",");
                put(to, labels[i].name);
                put(to, "=\"");
                put_escaped(to, labels[i].value);
                put(to, "\"");
        }
        put(to, labels_count > 0 ? "} " : " ");
        put(to, number);
        put(to, "\n");
}

static void put_whole(struct tr_exposition *to, const char *suffix, const struct tr_label *labels, size_t labels_count,
                      uint64_t number) {
        char text[24];
        snprintf(text, sizeof(text), "%" PRIu64, number);
        put_sample(to, suffix, labels, labels_count, text);
}

void tr_exposition_number(struct tr_exposition *to, const struct tr_label *labels, size_t labels_count, uint64_t number) {
        static const char *const suffixes[] = {
                [TR_FAMILY_GAUGE] = "",
                [TR_FAMILY_COUNTER] = "_total",
                [TR_FAMILY_HISTOGRAM] = NULL,
                [TR_FAMILY_INFO] = "_info",
        };
        assert(suffixes[to->family->type]);
        put_whole(to, suffixes[to->family->type], labels, labels_count, number);
}

/* Seconds as the format wants numbers that are no whole ones: "1.0". */
static void format_seconds(uint64_t ns, char ret_text[static TR_FLOAT_TEXT_MAX + 2]) {
        size_t len = tr_float_format((double)ns / NS_PER_S, ret_text);
        if (!strpbrk(ret_text, ".e"))
                memcpy(ret_text + len, ".0", sizeof(".0"));
}

void tr_exposition_times(struct tr_exposition *to, const struct tr_label *labels, size_t labels_count,
                         const struct tr_times_sum *times) {
        char text[TR_FLOAT_TEXT_MAX + 2];
        struct tr_label all[TR_LABELS_MAX + 1];
        uint64_t count = 0;

        assert(to->family->type == TR_FAMILY_HISTOGRAM && labels_count <= TR_LABELS_MAX);
        for (size_t i = 0; i < labels_count; i++)
                all[i] = labels[i];
        all[labels_count] = (struct tr_label){ "le", text };
        for (unsigned int i = 0; i < TR_TIMES_BOUNDS; i++) {
                format_seconds(tr_times_bounds_ns[i], text);
                count += times->counts[i];
                put_whole(to, "_bucket", all, labels_count + 1, count);
        }
        count += times->counts[TR_TIMES_BOUNDS];
        all[labels_count].value = "+Inf";
        put_whole(to, "_bucket", all, labels_count + 1, count);
        put_whole(to, "_count", labels, labels_count, count);
        format_seconds(times->sum_ns, text);
        put_sample(to, "_sum", labels, labels_count, text);
}

void tr_exposition_end(struct tr_exposition *to) {
        put(to, "# EOF\n");
}
