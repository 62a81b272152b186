/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests on their way out.
 *
 * A request is entered into the table of the unanswered before its first byte is written, and its params are written
 * in place: the one thing that can fail after that is the writing itself, and then both are taken back, so that
 * "nothing was sent" is true. Small requests are left in the output until troupe_process(), or until there is a good
 * piece of them: a thousand go out with one system call.
 */
#include "client/request.h"

#include <errno.h>
#include <stdlib.h>

#include "client/dispatch.h"
#include "client/greeting.h"
#include "client/params.h"

/* With this much in the output it is written at once. */
#define FLUSH_BYTES (64u << 10)

static int wait_for_room(struct troupe *troupe) {
        int r = 0;

        while (!r && !tr_connection_is_over(troupe) && !tr_connection_has_room(troupe))
                r = tr_connection_wait(troupe);
        return r ? r : tr_connection_is_over(troupe) ? -ENOTCONN : 0;
}

static int add_pending(struct tr_request *request, enum tr_request_mode mode) {
        struct troupe_pending *pending = calloc(1, sizeof(*pending));
        int r;

        if (!pending)
                return -ENOMEM;
        r = tr_pending_table_add(&request->troupe->table, pending);
        if (r) {
                free(pending);
                return r;
        }
        pending->troupe = request->troupe;
        pending->waiter = mode == TR_REQUEST_WAIT ? TR_WAITER_CALL : TR_WAITER_CALLBACK;
        request->pending = pending;
        return 0;
}

/* Its answer is dropped when it comes. */
static int give_up(struct troupe_pending *pending, int r) {
        pending->waiter = TR_WAITER_CALLBACK;
        return r;
}

static void take_back(struct tr_request *request) {
        if (request->out) {
                request->out->len = request->start;
                request->out->error = 0;
        }
        if (request->pending)
                tr_pending_free(tr_pending_table_take(&request->troupe->table, request->pending->id));
}

/* Writes it as far as its params. */
static int begin(struct tr_request *ret_request, struct troupe *troupe, const char *method, enum tr_request_mode mode) {
        struct tr_request request = { .troupe = troupe,
                                      .out = &troupe->output.bytes,
                                      .start = troupe->output.bytes.len };

        if (mode != TR_REQUEST_NOTIFY) {
                int r = add_pending(&request, mode);

                if (r)
                        return r;
        }
        tr_write_array(request.out, request.pending ? 4 : 3);
        tr_write_int(request.out, request.pending ? TR_FRAME_REQUEST : TR_FRAME_NOTIFICATION);
        if (request.pending)
                tr_write_int(request.out, request.pending->id);
        tr_write_text(request.out, method);
        request.params = request.out->len;
        *ret_request = request;
        return 0;
}

int tr_request_begin(struct tr_request *ret_request, struct troupe *troupe, const char *method,
                     enum tr_request_mode mode) {
        int r;

        *ret_request = (struct tr_request){ .troupe = troupe };
        r = tr_connection_check(troupe);
        if (r)
                return r;
        if (!method)
                return -EINVAL;
        if (mode == TR_REQUEST_WAIT) {
                if (troupe->depth)
                        return -EDEADLK;
                if (tr_incoming_is_full(&troupe->kept))
                        return -EOVERFLOW;
                r = wait_for_room(troupe);
                if (r)
                        return r;
        } else if (!tr_connection_has_room(troupe)) {
                troupe->room_wanted = true;
                return -ENOBUFS;
        }
        r = tr_greeting_write(troupe);
        return r ? r : begin(ret_request, troupe, method, mode);
}

int tr_request_begin_own(struct tr_request *ret_request, struct troupe *troupe, const char *method) {
        *ret_request = (struct tr_request){ .troupe = troupe };
        return begin(ret_request, troupe, method, TR_REQUEST_POST);
}

/* What all endings have in common. */
static int commit(struct tr_request *request, int r) {
        if (!r && request->out)
                r = tr_writer_error(request->out);
        if (r)
                take_back(request);
        else if (request->pending)
                request->pending->sent_at = tr_output_position(&request->troupe->output);
        return r;
}

int tr_request_call(struct tr_request *request, int r, struct troupe_value *ret_answer) {
        struct troupe *troupe = request->troupe;
        struct troupe_pending *pending = request->pending;

        r = commit(request, r);
        if (r)
                return r;
        tr_connection_flush(troupe);
        while (!pending->answered) {
                r = tr_connection_wait(troupe);
                if (r && !pending->answered)
                        return give_up(pending, r);
        }
        r = tr_dispatch_take(troupe, pending);
        if (!r && ret_answer)
                *ret_answer = troupe->answer;
        return r;
}

void tr_request_flush_much(struct troupe *troupe) {
        if (tr_output_waiting(&troupe->output) >= FLUSH_BYTES)
                tr_connection_flush(troupe);
}

int tr_request_post(struct tr_request *request, int r, troupe_callback *callback, void *userdata,
                    struct troupe_pending **ret_pending) {
        r = commit(request, r);
        if (r)
                return r;
        request->pending->callback = callback;
        request->pending->userdata = userdata;
        if (ret_pending)
                *ret_pending = request->pending;
        tr_request_flush_much(request->troupe);
        return 0;
}

int tr_request_notify(struct tr_request *request, int r) {
        r = commit(request, r);
        if (!r)
                tr_request_flush_much(request->troupe);
        return r;
}

int troupe_cancel(struct troupe_pending *pending) {
        struct tr_request request;
        int r;

        if (!pending)
                return -EINVAL;
        r = tr_connection_check(pending->troupe);
        if (r || pending->answered)
                return r;
        request = (struct tr_request){ .troupe = pending->troupe, .out = &pending->troupe->output.bytes };
        request.start = request.out->len;
        tr_write_array(request.out, 3);
        tr_write_int(request.out, TR_FRAME_NOTIFICATION);
        tr_write_text(request.out, "cancel");
        tr_write_array(request.out, 1);
        tr_write_int(request.out, pending->id);
        return tr_request_notify(&request, 0);
}
