/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many messages to one actor, in order, as fast as it goes, and never more than its mailbox holds.
 *
 * Every line is a `send` of its own, many of them in flight at once; each is answered, so the line that is refused is
 * known exactly. What may be in flight is what window.c says; it is told by marks.
 *
 * A mark is an `ask` of a handler that no actor has. It stands in the mailbox like any message, the actor comes to it
 * when it has taken out all that was sent before, and answers no-such-handler; nothing of the actor's code runs, and,
 * as nothing was sent with it, nothing counts as refused. The other ways were worse: an ask of the line's own handler
 * is answered only when a handler that awaits has ended, which may be when the lines behind it have come, and may
 * cost an answer of any size; looking at `info` again and again would be a poll without end while a handler takes its
 * time. A mark that does not fit in the mailbox (one for a single message; or others fill it) is asked again after a
 * pause: that is safe, as a mark has no effect.
 *
 * How much the mailbox holds is what `info` says once, at the beginning. Who may not ask that does without a window:
 * one line, one mark.
 *
 * A line that the actor cannot take at all ends the sending; what was sent behind it cannot be called back, so how
 * much of it was accepted is said. To keep that rare, a line that is large beyond half a mailbox goes alone.
 */
#include "client/command/send-lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/command/command.h"
#include "client/command/interrupt.h"
#include "client/command/lines.h"
#include "client/command/link.h"
#include "client/command/progress.h"
#include "client/command/report.h"
#include "client/command/window.h"
#include "client/troupe.h"
#include "proto/code.h"

#define MARK_HANDLER "(mark of troupe send)"
#define MARK_AGAIN_MIN_MS 1
#define MARK_AGAIN_MAX_MS 64

struct sender {
        struct tr_invocation *invocation;
        const char *target;
        const char *handler;
        enum tr_message_form form;
        struct tr_lines lines;
        struct tr_window window;
        struct tr_progress progress;

        uint64_t sent; /* lines */
        uint64_t accepted;
        uint64_t in_flight; /* sent and not answered */
        bool is_alone;      /* the one in flight is a large one */
        bool is_blocked;    /* the present line must wait */
        bool is_stopping;   /* no further line is sent */

        unsigned int marks_again; /* marks that have to be asked again */
        int mark_pause_ms;        /* and after how long */

        struct tr_problem problem; /* of the first line that was refused */
        uint64_t problem_line;
};

/* A line in flight. */
struct flight {
        struct sender *sender;
        uint64_t line;
};

/* Takes the problem where it is of an earlier line than the one that is known. */
static void note_problem(struct sender *sender, uint64_t line, struct tr_problem *take_problem) {
        sender->is_stopping = true;
        if (sender->problem.is_set && sender->problem_line <= line) {
                tr_problem_deinit(take_problem);
                return;
        }
        tr_problem_deinit(&sender->problem);
        sender->problem = *take_problem;
        sender->problem_line = line;
}

static void note_result(struct sender *sender, uint64_t line, int result) {
        struct tr_problem problem = { 0 };

        tr_problem_set(&problem, sender->invocation->troupe, result);
        note_problem(sender, line, &problem);
}

static void on_sent(struct troupe *troupe, int result, const struct troupe_value *answer, void *userdata) {
        struct flight *flight = userdata;
        struct sender *sender = flight->sender;

        sender->in_flight--;
        if (result)
                note_result(sender, flight->line, result);
        else
                sender->accepted++;
        free(flight);
}

static void on_mark(struct troupe *troupe, int result, const struct troupe_value *answer, void *userdata) {
        const struct troupe_error *error = result == -EREMOTEIO ? troupe_error(troupe) : NULL;
        struct sender *sender = userdata;
        enum tr_code code = TR_CODE_NO_SUCH_HANDLER;
        struct tr_problem problem = { 0 };

        if (error)
                (void)tr_code_parse(error->code, strlen(error->code), &code);
        switch (code) {
        case TR_CODE_MAILBOX_FULL:
        case TR_CODE_BUSY:
                sender->marks_again++;
                break;
        case TR_CODE_TIMEOUT:
                tr_problem_say(&problem, tr_code_exit(code), tr_code_text(code),
                               "what was sent up to here was not handled in time");
                note_problem(sender, sender->sent, &problem);
                break;
        case TR_CODE_DISCONNECTED:
                note_result(sender, sender->sent, result);
                break;
        default:
                /* Handled; or the actor has ended, and the next line will be told so. */
                sender->mark_pause_ms = 0;
                tr_window_handled(&sender->window);
        }
}

static int post_mark(struct sender *sender) {
        return troupe_ask_async(sender->invocation->troupe, sender->target, MARK_HANDLER, NULL, on_mark, sender, NULL,
                                NULL);
}

static void mark(struct sender *sender) {
        if (!tr_window_wants_mark(&sender->window, sender->is_blocked))
                return;
        if (!post_mark(sender))
                tr_window_marked(&sender->window);
}

static void mark_again(struct sender *sender) {
        while (sender->marks_again && !post_mark(sender))
                sender->marks_again--;
}

/* What a line counts as in the mailbox, at most: a number of JSON may be longer packed than written. */
static uint64_t cost_of(const struct sender *sender, size_t len) {
        return strlen(sender->handler) + (sender->form == TR_MESSAGE_LINES ? len + 8 : 3 * (uint64_t)len);
}

static int post_line(struct sender *sender, const char *line, size_t len) {
        struct flight *flight = malloc(sizeof(*flight));
        int r;

        if (!flight)
                return -ENOMEM;
        *flight = (struct flight){ sender, sender->sent + 1 };
        r = troupe_send_async(sender->invocation->troupe, sender->target, sender->handler, on_sent, flight, NULL,
                              sender->form == TR_MESSAGE_LINES ? "S" : "*J", line, len);
        if (r)
                free(flight);
        return r;
}

/* Sends the present line. False where it has to wait, or will never be sent. */
static bool send_line(struct sender *sender, const char *line, size_t len) {
        uint64_t cost = cost_of(sender, len);
        bool is_large = tr_window_is_large(&sender->window, cost);
        struct tr_problem problem = { 0 };
        int r;

        if (sender->is_alone || (is_large && sender->in_flight) || !tr_window_admits(&sender->window, cost))
                return false;
        r = post_line(sender, line, len);
        switch (r) {
        case 0:
                sender->sent++;
                sender->in_flight++;
                sender->is_alone = is_large;
                tr_window_sent(&sender->window, cost);
                return true;
        case -ENOBUFS:
                return false;
        case -EINVAL:
        case -ERANGE:
                tr_message_problem(&problem, line, len);
                note_problem(sender, sender->sent + 1, &problem);
                return false;
        default:
                note_result(sender, sender->sent + 1, r);
                return false;
        }
}

/* As many lines as are here and may go. */
static void send_lines(struct sender *sender) {
        const char *line;
        size_t len;

        sender->is_blocked = false;
        if (!sender->in_flight)
                sender->is_alone = false;
        while (!sender->is_stopping && tr_lines_peek(&sender->lines, &line, &len)) {
                if (!send_line(sender, line, len)) {
                        sender->is_blocked = true;
                        break;
                }
                tr_lines_drop(&sender->lines, len);
                mark(sender);
        }
        mark(sender);
}

static void read_lines(struct sender *sender) {
        struct tr_problem problem = { 0 };
        int r = tr_lines_read(&sender->lines, STDIN_FILENO);

        if (!r)
                return;
        if (r == -EFBIG)
                tr_problem_say(&problem, TR_EXIT_USAGE, tr_code_text(TR_CODE_TOO_LARGE), "the line is too long");
        else
                tr_problem_say(&problem, TR_EXIT_FAILED, tr_code_text(TR_CODE_INTERNAL), strerror(-r));
        note_problem(sender, sender->sent + 1, &problem);
}

/* The pause before a mark is asked again doubles as long as none is answered. */
static int pause_ms(struct sender *sender) {
        if (!sender->marks_again)
                return -1;
        sender->mark_pause_ms = sender->mark_pause_ms ? 2 * sender->mark_pause_ms : MARK_AGAIN_MIN_MS;
        if (sender->mark_pause_ms > MARK_AGAIN_MAX_MS)
                sender->mark_pause_ms = MARK_AGAIN_MAX_MS;
        return sender->mark_pause_ms;
}

/* One round: send, wait, read. False where it is done. */
static bool step(struct sender *sender) {
        struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
        const char *line;
        size_t len;
        bool wants_input, is_pausing;

        send_lines(sender);
        if (!sender->in_flight &&
            (sender->is_stopping || (sender->lines.is_over && !tr_lines_peek(&sender->lines, &line, &len))))
                return false;
        wants_input = !sender->is_stopping && !sender->is_blocked && !sender->lines.is_over;
        is_pausing = sender->marks_again;
        switch (tr_link_step(sender->invocation, wants_input ? &input : NULL, pause_ms(sender))) {
        case TR_STEP_INTERRUPTED:
                sender->is_stopping = true;
                return sender->in_flight;
        case TR_STEP_OVER:
                if (!sender->problem.is_set)
                        note_result(sender, sender->sent, -ENOTCONN);
                return false;
        case TR_STEP_DONE:
                break;
        }
        if (is_pausing)
                mark_again(sender);
        if (wants_input && input.revents)
                read_lines(sender);
        tr_progress_update(&sender->progress, sender->accepted, "lines", sender->lines.dropped);
        return true;
}

static uint64_t number_in(const struct troupe_value *map, const char *key) {
        struct troupe_value value;
        int64_t number;

        return troupe_value_get(map, key, &value) || troupe_value_int(&value, &number) || number < 0 ? 0
                                                                                                     : (uint64_t)number;
}

/* An error here is none: what is wrong with the target will be told of the first line. */
static int ask_for_limits(struct sender *sender) {
        struct tr_reply reply = { 0 };
        int r = troupe_request_async(sender->invocation->troupe, "info", tr_link_on_reply, &reply, &reply.pending, "s",
                                     sender->target);

        if (r) {
                tr_problem_set(&sender->problem, sender->invocation->troupe, r);
                return tr_problem_report(&sender->problem, sender->invocation, 0);
        }
        while (!reply.is_done)
                if (tr_link_step(sender->invocation, NULL, -1) == TR_STEP_INTERRUPTED) {
                        tr_link_close(sender->invocation);
                        tr_reply_deinit(&reply);
                        return tr_interrupt_exit();
                }
        tr_window_init(&sender->window, number_in(&reply.value, "mailbox_max"),
                       number_in(&reply.value, "mailbox_bytes_max"));
        tr_reply_deinit(&reply);
        return 0;
}

/* All lines before the first that was refused were accepted; what was accepted beyond those stood behind it. */
static int report(struct sender *sender) {
        uint64_t before = sender->problem_line - 1;
        int status = tr_problem_report(&sender->problem, sender->invocation, sender->problem_line);

        if (sender->accepted > before)
                fprintf(stderr, "troupe: send: %" PRIu64 " lines behind it were on their way and were accepted\n",
                        sender->accepted - before);
        return status;
}

static int conclude(struct sender *sender) {
        int status = TR_EXIT_DONE;

        tr_progress_clear(&sender->progress);
        if (sender->problem.is_set)
                status = report(sender);
        if (tr_interrupt_happened()) {
                if (!status)
                        fprintf(stderr, "troupe: send: cancelled: interrupted behind line %" PRIu64 "\n", sender->sent);
                status = tr_interrupt_exit();
        }
        return status;
}

int tr_send_lines(struct tr_invocation *invocation, enum tr_message_form form) {
        struct sender sender = {
                .invocation = invocation,
                .target = invocation->words.operands[0],
                .handler = invocation->words.operands[1],
                .form = form,
        };
        int status = ask_for_limits(&sender);

        tr_progress_expect(&sender.progress, STDIN_FILENO);
        if (!status) {
                while (step(&sender))
                        ;
                status = conclude(&sender);
        }
        /* its callbacks are about the sender */
        tr_link_close(invocation);
        tr_problem_deinit(&sender.problem);
        tr_lines_deinit(&sender.lines);
        return status;
}
