/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From bytes to callbacks.
 *
 * Every request leaves the table exactly once: when its answer is read, or when the connection has ended. Whoever took
 * it out runs its callback or keeps it, and that is what makes each callback run exactly once. A callback may do
 * anything that does not wait, the connection's end included, so after each of them nothing is assumed: the loop looks
 * at the connection again, and its memory is held by tr_dispatch_enter().
 */
#include "client/dispatch.h"

#include <errno.h>
#include <stdlib.h>

#include "client/greeting.h"
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

/* Runs the library's own part of a request's end. */
static void run_hook(struct troupe *troupe, struct troupe_pending *pending, enum tr_outcome outcome,
                     const struct troupe_value *value) {
        if (pending->hook)
                pending->hook(troupe, pending, outcome, value);
        pending->hook = NULL;
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

/* What nobody answers any more. Only a connection that restores itself goes on, so that a program can do again what was
 * never sent. */
static void lose(struct troupe *troupe, struct troupe_pending *take_pending) {
        bool is_sent = take_pending->sent_at <= tr_output_written(&troupe->output);

        if (take_pending->waiter != TR_WAITER_CALL && !take_pending->callback) {
                tr_pending_free(take_pending);
                return;
        }
        take_pending->answered = take_pending->lost = true;
        take_pending->may_have_run = is_sent || !(troupe->flags & TROUPE_RECONNECT);
        take_pending->order = tr_connection_order(troupe);
        if (take_pending->waiter == TR_WAITER_CALLBACK)
                tr_pending_queue_append(&troupe->answered, take_pending);
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
        take_pending->order = tr_connection_order(troupe); /* what was held back until now comes after it */
        run_hook(troupe, take_pending, failed ? TR_OUTCOME_REFUSED : TR_OUTCOME_ANSWERED, value);
        if (take_pending->waiter == TR_WAITER_CALL || (take_pending->callback && how == TR_DISPATCH_KEEP))
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
static void refuse_answer(struct troupe *troupe, enum tr_dispatch how, uint32_t id, enum tr_code code) {
        struct troupe_pending *pending = tr_pending_table_take(&troupe->table, id);
        struct tr_writer error = TR_WRITER_INIT;

        if (!pending)
                return;
        tr_write_map(&error, 3);
        tr_write_text(&error, "code");
        tr_write_text(&error, tr_code_text(code));
        tr_write_text(&error, "message");
        tr_write_text(&error, code == TR_CODE_TOO_LARGE ? "the answer is larger than a frame may be"
                                                        : "the answer holds a value that cannot cross");
        tr_write_text(&error, "ran");
        tr_write_text(&error, tr_ran_text(TR_RAN_YES));
        answer(troupe, pending, how, true, &(struct troupe_value){ error.data, error.len });
        tr_writer_deinit(&error);
}

/* A frame that this side cannot take. It is said once, so a request that there is no memory to answer for costs the
 * connection: whoever asked must hear of it. */
static void on_refused(struct troupe *troupe, enum tr_dispatch how, const struct tr_refusal *refusal) {
        enum tr_code code = refusal->reason == TR_REFUSAL_TOO_LARGE ? TR_CODE_TOO_LARGE : TR_CODE_NOT_SENDABLE;

        if (!refusal->has_id)
                return;
        if (refusal->type == TR_FRAME_RESPONSE)
                refuse_answer(troupe, how, refusal->id, code);
        else if (tr_asked_refuse(troupe, refusal->id, tr_code_text(code)))
                tr_connection_end(troupe, NULL, false);
}

void tr_dispatch_lose_all(struct troupe *troupe, const struct troupe_value *why) {
        struct troupe_pending *pending;

        while ((pending = tr_pending_table_pop(&troupe->table))) {
                run_hook(troupe, pending, TR_OUTCOME_LOST, NULL);
                if (why)
                        answer(troupe, pending, TR_DISPATCH_KEEP, true, why);
                else
                        lose(troupe, pending);
        }
}

/* 0, or why it must be dealt with again. */
static int on_frame(struct troupe *troupe, enum tr_dispatch how, const struct tr_frame *frame) {
        struct tr_input *input = &troupe->input;
        int r;

        if (frame->type == TR_FRAME_RESPONSE) {
                on_response(troupe, how, frame);
                return 0;
        }
        r = tr_incoming_hold(troupe, frame);
        if (r)
                return r < 0 ? r : 0;
        if (how == TR_DISPATCH_KEEP)
                return tr_incoming_keep(troupe, frame);
        return tr_incoming_run(troupe, frame, input->data + (frame->params.data - input->data));
}

/* 0, or why the frame that the input begins with is still to be dealt with. */
static int deal_with_frames(struct troupe *troupe, enum tr_dispatch how) {
        struct tr_input *input = &troupe->input;
        int r;

        for (;;) {
                /* What was held back until the answer that was just read comes before what is behind that. */
                r = how == TR_DISPATCH_RUN ? tr_dispatch_settle(troupe) : 0;
                if (r || !tr_connection_is_open(troupe) || input->end == input->begin)
                        return r;
                size_t bytes = input->end - input->begin;
                struct tr_refusal refusal;
                struct tr_frame frame;

                switch (tr_scan(&troupe->scanner, input->data + input->begin, bytes, &frame, &refusal)) {
                case TR_SCAN_FRAME:
                        r = on_frame(troupe, how, &frame);
                        if (r)
                                return r;
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
                        return 0;
                case TR_SCAN_BAD:
                        tr_connection_end(troupe, NULL, false);
                        return 0;
                }
        }
}

int tr_dispatch_input(struct troupe *troupe, enum tr_dispatch how, bool wait) {
        int r, filled = TR_INPUT_FULL;

        if (!tr_connection_is_open(troupe))
                return 0;
        if (!troupe->stalled) {
                filled = tr_input_fill(&troupe->input, troupe->fd, wait);
                if (filled == TR_INPUT_NOTHING)
                        return 0;
                if (filled == -ENOMEM)
                        return filled;
                if (filled < 0 || filled == TR_INPUT_END) {
                        tr_connection_end(troupe, NULL, false);
                        return 0;
                }
        }
        tr_dispatch_enter(troupe);
        r = deal_with_frames(troupe, how);
        troupe->stalled = r != 0;
        (void)tr_dispatch_leave(troupe);
        return r ? r : filled == TR_INPUT_FULL;
}

/* What became of a request that was kept, with the error set where there is one. */
static int kept_result(struct troupe *troupe, const struct troupe_pending *pending) {
        if (pending->lost) {
                tr_failure_say(&troupe->failure, TR_CODE_DISCONNECTED,
                               pending->may_have_run ? "the connection to the daemon broke"
                                                     : "the connection to the daemon broke before this was sent");
                if (!pending->may_have_run)
                        troupe->failure.error.ran = TROUPE_RAN_NO;
                return -EREMOTEIO;
        }
        return pending->result ? pending->result : result_of(troupe, pending->failed, &pending->answer);
}

static void settle_request(struct troupe *troupe, struct troupe_pending *take_pending) {
        run(troupe, take_pending, kept_result(troupe, take_pending), &take_pending->answer);
}

/* What was kept, in the order in which it came. What the daemon said of its own accord is for nobody once the
 * connection is being freed. */
int tr_dispatch_settle(struct troupe *troupe) {
        struct troupe_pending *pending;
        int r = 0;

        while (!r && (troupe->answered.first || (troupe->kept.first && !troupe->freed))) {
                pending = troupe->answered.first;
                if (pending && (troupe->freed || pending->order < tr_incoming_order(&troupe->kept)))
                        settle_request(troupe, tr_pending_queue_pop(&troupe->answered));
                else
                        r = tr_incoming_run_kept(troupe);
        }
        return r;
}

int tr_dispatch_take(struct troupe *troupe, struct troupe_pending *take_pending) {
        int r = kept_result(troupe, take_pending);

        troupe_value_free(&troupe->answer);
        if (!r) {
                troupe->answer = take_pending->answer;
                take_pending->answer = (struct troupe_value){ 0 };
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
        int r;

        if (!troupe)
                return -EINVAL;
        if (troupe->depth)
                return 0;
        if (tr_connection_check(troupe) == -ECHILD)
                return -ECHILD;

        tr_dispatch_enter(troupe);
        tr_connection_advance(troupe);
        tr_connection_flush(troupe);
        r = tr_dispatch_settle(troupe);
        if (!r && (revents || troupe->stalled))
                r = tr_dispatch_input(troupe, TR_DISPATCH_RUN, false);
        tell_of_room(troupe);
        tr_connection_flush(troupe);
        if (r >= 0) {
                int settled = tr_dispatch_settle(troupe);

                r = settled ? settled : r;
        }
        if (r >= 0)
                tr_greeting_tell(troupe);
        if (!tr_dispatch_leave(troupe) || (tr_connection_is_over(troupe) && r >= 0))
                return -ENOTCONN;
        return r;
}
