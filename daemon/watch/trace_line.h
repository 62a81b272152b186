/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_WATCH_TRACE_LINE_H
#define TR_WATCH_TRACE_LINE_H

#include <stddef.h>

struct tr_span_record;

/*
 * A span as a line of JSON in OTLP's shape (https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/): ids in hexadecimal, 64-bit
 * numbers as text. Each line stands for itself. Nothing here keeps state or allocates.
 */

/* No line is longer. */
#define TR_TRACE_LINE_MAX 8192

/* Writes the line with its line break; answers how many bytes that are. */
size_t tr_trace_line(const struct tr_span_record *record, char ret_line[static TR_TRACE_LINE_MAX]);

#endif
