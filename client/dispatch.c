/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From bytes to callbacks.
 *
 * Every request leaves the table exactly once: when its answer is read, when the connection is over, or when it is
 * freed. Whoever took it out runs its callback or keeps it, and that is what makes each callback run exactly once. A
 * callback may do anything that does not wait, the connection's end included, so after each of them nothing is
 * assumed: the loop looks at the connection again, and its memory is held by tr_dispatch_enter().
 */
#include "client/dispatch.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/value.h"

void tr_dispatch_enter(struct troupe *troupe) {
        troupe->depth++;
}

bool tr_dispatch_leave(struct troupe *troupe) {
        troupe->depth--;
        if (!troupe->freed || troupe->depth)
                return true;
        tr_connection_release(troupe);
        return false;
}

static void set_end_failure(struct troupe *troupe) {
        if (troupe->end.is_set && !tr_failure_copy(&troupe->failure, &troupe->end))
                return;
        tr_failure_say(&troupe->failure, TR_CODE_DISCONNECTED, "the connection to the daemon broke");
}

/* The callback of a request that is in no table and queue any more; frees it. The caller has filled in the
 * connection's failure where the result is -EREMOTEIO. */
static void run(struct troupe *troupe, struct troupe_pending *take_pending, int result,
                const struct troupe_value *answer) {
        if (take_pending->callback) {
                tr_dispatch_enter(troupe);
                take_pending->callback(troupe, result, result ? NULL : answer, take_pending->userdata);
                (void)tr_dispatch_leave(troupe);
        }
        tr_failure_clear(&troupe->failure);
        tr_pending_free(take_pending);
}

/* An answer that nobody can take now. Where there is no memory for it, that is its answer. */
static void keep(struct troupe *troupe, struct troupe_pending *pending, bool failed, const struct troupe_value *value) {
        pending->answered = true;
        pending->failed = failed;
        pending->result = troupe_value_dup(value, &pending->answer);
        if (pending->waiter == TR_WAITER_CALLBACK)
                tr_pending_queue_append(&troupe->answered, pending);
}

static int result_of(struct troupe *troupe, bool failed, const struct troupe_value *value) {
        int r;

        if (!failed)
                return 0;
        r = tr_failure_read(&troupe->failure, value->data, value->size);
        return r ? r : -EREMOTEIO;
}

static void answer(struct troupe *troupe, struct troupe_pending *take_pending, enum tr_dispatch how, bool failed,
                   const struct troupe_value *value) {
        if (take_pending->waiter == TR_WAITER_CALL ||
            (take_pending->waiter == TR_WAITER_CALLBACK && how == TR_DISPATCH_KEEP))
                keep(troupe, take_pending, failed, value);
        else
                run(troupe, take_pending, result_of(troupe, failed, value), value);
}

static void on_response(struct troupe *troupe, enum tr_dispatch how, const struct tr_frame *frame) {
        struct troupe_pending *pending = tr_pending_table_take(&troupe->table, frame->id);
        struct tr_reader reader = tr_reader(frame->error.data, frame->error.bytes);
        struct tr_token error;
        bool failed;

        if (!pending)
                return;
        failed = tr_read(&reader, &error) || error.type != TR_NIL;
        answer(troupe, pending, how, failed,
               failed ? &(struct troupe_value){ frame->error.data, frame->error.bytes }
                      : &(struct troupe_value){ frame->result.data, frame->result.bytes });
}

/* An answer that this side cannot take: it ran, and the request ends with that. */
static void on_refused(struct troupe *troupe, enum tr_dispatch how, const struct tr_refusal *refusal) {
        bool too_large = refusal->reason == TR_REFUSAL_TOO_LARGE;
        struct tr_writer error = TR_WRITER_INIT;
        struct troupe_pending *pending;

        if (refusal->type != TR_FRAME_RESPONSE || !refusal->has_id)
                return;
        pending = tr_pending_table_take(&troupe->table, refusal->id);
        if (!pending)
                return;
        tr_write_map(&error, 3);
        tr_write_text(&error, "code");
        tr_write_text(&error, tr_code_text(too_large ? TR_CODE_TOO_LARGE : TR_CODE_NOT_SENDABLE));
        tr_write_text(&error, "message");
        tr_write_text(&error, too_large ? "the answer is larger than a frame may be"
                                        : "the answer holds a value that cannot cross");
        tr_write_text(&error, "ran");
        tr_write_text(&error, tr_ran_text(TR_RAN_YES));
        answer(troupe, pending, how, true, &(struct troupe_value){ error.data, error.len });
        tr_writer_deinit(&error);
}

/* Nothing here serves or listens, so nothing is asked of it; who asks all the same gets an answer. */
static void on_request(struct troupe *troupe, const struct tr_frame *frame) {
        struct tr_writer *out = &troupe->output.bytes;
        size_t start = out->len;

        tr_write_array(out, 4);
        tr_write_int(out, TR_FRAME_RESPONSE);
        tr_write_int(out, frame->id);
        tr_write_text(out, tr_code_text(TR_CODE_UNKNOWN_METHOD));
        tr_write_nil(out);
        if (tr_writer_error(out)) {
                out->len = start;
                out->error = 0;
        }
}

static void on_frame(struct troupe *troupe, enum tr_dispatch how, const struct tr_frame *frame) {
        switch (frame->type) {
        case TR_FRAME_RESPONSE:
                on_response(troupe, how, frame);
                break;
        case TR_FRAME_REQUEST:
                on_request(troupe, frame);
                break;
        case TR_FRAME_NOTIFICATION:
                break;
        }
}

static void deal_with_frames(struct troupe *troupe, enum tr_dispatch how) {
        struct tr_input *input = &troupe->input;

        while (!tr_connection_is_over(troupe) && input->end > input->begin) {
                size_t bytes = input->end - input->begin;
                struct tr_refusal refusal;
                struct tr_frame frame;

                switch (tr_scan(&troupe->scanner, input->data + input->begin, bytes, &frame, &refusal)) {
                case TR_SCAN_FRAME:
                        on_frame(troupe, how, &frame);
                        tr_input_drop(input, frame.bytes);
                        break;
                case TR_SCAN_REFUSED:
                        on_refused(troupe, how, &refusal);
                        break;
                case TR_SCAN_SKIPPED:
                        tr_input_drop(input, frame.bytes);
                        break;
                case TR_SCAN_MORE:
                        tr_input_drop(input, tr_scanner_consumed(&troupe->scanner, bytes));
                        return;
                case TR_SCAN_BAD:
                        tr_connection_end(troupe);
                        return;
                }
        }
}

int tr_dispatch_input(struct troupe *troupe, enum tr_dispatch how, bool wait) {
        int r;

        if (tr_connection_is_over(troupe) || troupe->connecting)
                return 0;
        r = tr_input_fill(&troupe->input, troupe->fd, wait);
        if (r == TR_INPUT_NOTHING)
                return 0;
        if (r == -ENOMEM)
                return r;
        if (r < 0 || r == TR_INPUT_END) {
                tr_connection_end(troupe);
                return 0;
        }
        tr_dispatch_enter(troupe);
        deal_with_frames(troupe, how);
        (void)tr_dispatch_leave(troupe);
        return r == TR_INPUT_FULL;
}

void tr_dispatch_settle(struct troupe *troupe) {
        struct troupe_pending *pending;

        while ((pending = tr_pending_queue_pop(&troupe->answered))) {
                int result = pending->result ? pending->result : result_of(troupe, pending->failed, &pending->answer);

                run(troupe, pending, result, &pending->answer);
        }
        while (tr_connection_is_over(troupe) && (pending = tr_pending_table_pop(&troupe->table))) {
                set_end_failure(troupe);
                run(troupe, pending, -EREMOTEIO, NULL);
        }
}

int tr_dispatch_take(struct troupe *troupe, struct troupe_pending *take_pending) {
        int r;

        troupe_value_free(&troupe->answer);
        if (!take_pending->answered) {
                (void)tr_pending_table_take(&troupe->table, take_pending->id);
                set_end_failure(troupe);
                r = -EREMOTEIO;
        } else if (take_pending->result) {
                r = take_pending->result;
        } else if (take_pending->failed) {
                r = result_of(troupe, true, &take_pending->answer);
        } else {
                troupe->answer = take_pending->answer;
                take_pending->answer = (struct troupe_value){ 0 };
                r = 0;
        }
        tr_pending_free(take_pending);
        return r;
}

static void tell_of_room(struct troupe *troupe) {
        if (!troupe->room_wanted || tr_connection_is_over(troupe) || !tr_connection_has_much_room(troupe))
                return;
        troupe->room_wanted = false;
        if (!troupe->room_callback)
                return;
        tr_dispatch_enter(troupe);
        troupe->room_callback(troupe, troupe->room_userdata);
        (void)tr_dispatch_leave(troupe);
}

int troupe_process(struct troupe *troupe, int revents) {
        int more = 0;

        if (!troupe)
                return -EINVAL;
        if (troupe->depth)
                return 0;
        if (tr_connection_check(troupe) == -ECHILD)
                return -ECHILD;

        tr_dispatch_enter(troupe);
        tr_connection_advance(troupe);
        tr_connection_flush(troupe);
        tr_dispatch_settle(troupe);
        if (revents)
                more = tr_dispatch_input(troupe, TR_DISPATCH_RUN, false);
        tell_of_room(troupe);
        tr_connection_flush(troupe);
        tr_dispatch_settle(troupe);
        if (!tr_dispatch_leave(troupe) || tr_connection_is_over(troupe))
                return -ENOTCONN;
        return more;
}
