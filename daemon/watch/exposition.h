/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_WATCH_EXPOSITION_H
#define TR_WATCH_EXPOSITION_H

#include <stddef.h>
#include <stdint.h>

#include "proto/value.h"

struct tr_times_sum;

/*
 * Writing OpenMetrics text: families one after another, each with all of its samples. A failure to write is remembered, and
 * the caller looks once, at the end.
 */

enum tr_family_type {
        TR_FAMILY_GAUGE,
        TR_FAMILY_COUNTER,   /* its samples are called NAME_total */
        TR_FAMILY_HISTOGRAM, /* NAME_bucket, NAME_count, NAME_sum */
        TR_FAMILY_INFO,      /* NAME_info */
};

struct tr_family {
        const char *name;
        enum tr_family_type type;
        const char *unit; /* with which the name ends; NULL: none */
        const char *help; /* a sentence */
};

struct tr_label {
        const char *name;
        const char *value; /* any text */
};

/* More than any sample has. */
#define TR_LABELS_MAX 4

struct tr_exposition {
        struct tr_writer text; /* its bytes, and whether there was memory for them */
        const struct tr_family *family;
};

/* Begins a family. It outlives its samples. */
void tr_exposition_family(struct tr_exposition *to, const struct tr_family *family);
/* A sample of a gauge, a counter or an info. */
void tr_exposition_number(struct tr_exposition *to, const struct tr_label *labels, size_t labels_count, uint64_t number);
/* All samples of a histogram, in seconds. */
void tr_exposition_times(struct tr_exposition *to, const struct tr_label *labels, size_t labels_count,
                         const struct tr_times_sum *times);
/* The end. */
void tr_exposition_end(struct tr_exposition *to);

#endif
