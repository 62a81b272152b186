/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_TESTS_UNIT_SCAN_H
#define TR_TESTS_UNIT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"

/*
 * Drives the scanner as a connection does: bytes come in pieces, and what was
 * scanned is dropped. What it says is kept with places in the stream, so that two
 * ways to cut one stream can be compared.
 *
 * Each call sees a copy of exactly the bytes that it may look at, and those that it has
 * looked at before are overwritten in it: a scanner that looks beyond the end is
 * found by a sanitizer, one that looks back says something else.
 */

struct scan_event {
        enum tr_scan what;      /* never TR_SCAN_MORE */
        size_t begin, end;      /* of the frame; end: TR_SCAN_FRAME and TR_SCAN_SKIPPED */
        enum tr_frame_type type;
        bool has_id;
        uint32_t id;
        size_t parts[2];        /* where method and params, or error and result, begin; 0: they did not */
        enum tr_refusal_reason reason;
        int ext_type;
        size_t offset;          /* of what was refused, in the stream */
};

#define SCAN_EVENTS_MAX 512

struct scan_log {
        struct scan_event events[SCAN_EVENTS_MAX];
        size_t count;
        size_t rest;   /* bytes at the end that are kept for the next call */
        bool skipping; /* the end is within a refused frame */
};

/* Scans a stream whose first piece has `first` bytes and all others `step`. More events than fit are not scanned. */
void scan_stream(struct scan_log *log, const uint8_t *data, size_t bytes, size_t frame_max, size_t first, size_t step);

/* Whether the two say the same. */
bool scan_logs_equal(const struct scan_log *a, const struct scan_log *b);

#endif
