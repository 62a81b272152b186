/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_WATCH_METRICS_H
#define TR_WATCH_METRICS_H

struct tr_exposition;
struct tr_feed;
struct tr_server;
struct tr_system;
struct tr_trace_file;
struct tr_traces;
struct tr_writer;

/*
 * The metrics: what the daemon has counted, as OpenMetrics text. Everything is counted where it happens, all the time; here it is
 * only looked at. What no label has is a value that callers can make up without end: handlers, users, handles.
 */

/* What they are of. */
struct tr_watched {
        struct tr_system *system;
        const struct tr_server *server;
        struct tr_feed *feed;
        struct tr_traces *traces;
        struct tr_trace_file *trace_file;
};

/* Appends the whole text. Loop thread. A want of memory is in the writer. */
void tr_metrics_write(const struct tr_watched *watched, struct tr_writer *text);

/* One file for each part of the daemon that has some: the families it has, whole. Who adds a part adds it to the table in metrics.c. */
void tr_metrics_daemon(const struct tr_watched *watched, struct tr_exposition *to);
void tr_metrics_components(const struct tr_watched *watched, struct tr_exposition *to);
void tr_metrics_pools(const struct tr_watched *watched, struct tr_exposition *to);
void tr_metrics_tasks(const struct tr_watched *watched, struct tr_exposition *to);
void tr_metrics_traces(const struct tr_watched *watched, struct tr_exposition *to);

#endif
