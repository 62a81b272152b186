/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CLIENT_REQUEST_H
#define TR_CLIENT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "client/connection.h"

/*
 * A request while it is written, straight into the connection's output: begin, append the params, then exactly one of
 * the endings, which also takes back what was written where that failed. So that each method is written once, for the
 * call that waits and the call with a callback alike:
 *
 *      r = tr_request_begin(&request, troupe, "stop", TR_REQUEST_WAIT);
 *      if (!r)
 *              r = write_stop(request.out, target, options);
 *      return tr_request_call(&request, r, NULL);
 */
struct tr_request {
        struct troupe *troupe;
        struct tr_writer *out;
        size_t start;                   /* where it begins in the output, */
        size_t params;                  /* and where its params do */
        struct troupe_pending *pending; /* NULL: a notification, or it was not begun */
};

enum tr_request_mode {
        TR_REQUEST_WAIT,   /* ends with tr_request_call(); waits for room */
        TR_REQUEST_POST,   /* ends with tr_request_post(); -ENOBUFS where there is no room */
        TR_REQUEST_NOTIFY, /* ends with tr_request_notify(); the same */
};

TR_MUST_CHECK int tr_request_begin(struct tr_request *ret_request, struct troupe *troupe, const char *method,
                                   enum tr_request_mode mode);

/* A request of the library's own, which nothing but lack of memory keeps from being sent. Ends with tr_request_post(). */
TR_MUST_CHECK int tr_request_begin_own(struct tr_request *ret_request, struct troupe *troupe, const char *method);

/* `r` is what became of writing the params: where it is not 0 nothing is sent, and it is the answer. */

/* Sends it and waits. *ret_answer (may be NULL) is the connection's. */
int tr_request_call(struct tr_request *request, int r, struct troupe_value *ret_answer);
int tr_request_post(struct tr_request *request, int r, troupe_callback *callback, void *userdata,
                    struct troupe_pending **ret_pending);
int tr_request_notify(struct tr_request *request, int r);

/* Writes what is queued where it is much; else it is left for troupe_process(). */
void tr_request_flush_much(struct troupe *troupe);

#endif
