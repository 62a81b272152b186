/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_WATCH_TRACE_FILE_H
#define TR_WATCH_TRACE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/error.h"

struct tr_trace_file;
struct tr_traces;

/*
 * The file that spans are appended to, a line of JSON each (trace_line.h). A thread of its own reads them out of the traces and writes them, so
 * that neither an actor nor the loop waits for a disk. Those that it does not get round to before they are gone there, and those that
 * cannot be written, are counted, and the log tells how many.
 */

/* Writes nothing yet, and has no thread. 0 or a negative errno. The traces outlive it. */
TR_MUST_CHECK int tr_trace_file_new(struct tr_traces *traces, struct tr_trace_file **ret_file);
/* What has ended is written; then there is no thread any more. No span ends any more, or it is not written. False where the file does
 * not take it within two seconds: the thread is left as it is, with all that it uses, and the process has to end. NULL is fine. */
TR_MUST_CHECK bool tr_trace_file_stop(struct tr_trace_file *file);
/* It was stopped, and no other thread uses it. NULL is fine. */
void tr_trace_file_free(struct tr_trace_file *file);

/* Opens a file for it: NULL with its descriptor, or why not (a sentence's end, static). */
TR_MUST_CHECK const char *tr_trace_file_open(const char *path, int *ret_fd);
/*
 * Spans that end from now on go there, and those that are not written yet; what was open is closed. -1: nowhere. Also for the same file
 * once more, which may have been renamed meanwhile (SIGHUP). 0, or a negative errno, and the descriptor is closed. Loop thread.
 */
TR_MUST_CHECK int tr_trace_file_set(struct tr_trace_file *file, int take_fd);
/* A span was put into the traces. Any thread. */
void tr_trace_file_notice(struct tr_trace_file *file);
/* How many spans were not written, so far. Any thread. */
uint64_t tr_trace_file_dropped(struct tr_trace_file *file);

#endif
