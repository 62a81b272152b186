/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One ask for each line, several in flight, the answers in order.
 *
 * The lines between the oldest whose answer is not printed and the newest that was asked are a ring. Its size is the
 * number in flight: an answer that has come, but whose turn it is not, counts as one, so that what is kept is bounded
 * however slow the oldest is. The first line that fails, in the order of lines, ends it: what is still in flight is
 * taken back.
 */
#include "client/command/ask-lines.h"

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
#include "client/command/show.h"
#include "proto/code.h"

/* A line that was asked. */
struct asked {
        struct tr_reply reply;
        uint64_t bytes; /* of it and of all lines before it */
};

struct asker {
        struct tr_invocation *invocation;
        enum tr_message_form form;
        enum tr_show how;
        struct tr_lines lines;
        struct tr_progress progress;
        struct asked *ring; /* line n is at n modulo its size */
        uint64_t ring_size;
        uint64_t printed;       /* lines whose answer is out */
        uint64_t printed_bytes; /* of those lines */
        uint64_t asked;
        bool is_over; /* nothing more is asked or printed */
        int status;
};

static struct asked *asked_of(struct asker *asker, uint64_t line) {
        return &asker->ring[line % asker->ring_size];
}

static struct tr_reply *reply_of(struct asker *asker, uint64_t line) {
        return &asked_of(asker, line)->reply;
}

/* Ends it with what is wrong with a line. */
static void fail(struct asker *asker, uint64_t line, const struct tr_problem *problem) {
        asker->is_over = true;
        tr_progress_clear(&asker->progress);
        asker->status = tr_problem_report(problem, asker->invocation, line);
}

static int post(struct asker *asker, struct tr_reply *reply, const char *line, size_t len) {
        const struct tr_words *words = &asker->invocation->words;

        return troupe_ask_async(asker->invocation->troupe, words->operands[0], words->operands[1], NULL,
                                tr_link_on_reply, reply, &reply->pending, asker->form == TR_MESSAGE_LINES ? "S" : "*J",
                                line, len);
}

/* A line that cannot be asked takes its turn like an answer. False where there is no room now. */
static bool ask_line(struct asker *asker, const char *line, size_t len) {
        struct tr_reply *reply = reply_of(asker, asker->asked);
        int r;

        *reply = (struct tr_reply){ 0 };
        r = post(asker, reply, line, len);
        if (r == -ENOBUFS)
                return false;
        if (r == -EINVAL || r == -ERANGE)
                tr_message_problem(&reply->problem, line, len);
        else if (r)
                tr_problem_set(&reply->problem, asker->invocation->troupe, r);
        reply->is_done = r;
        asker->asked++;
        return true;
}

static bool ring_is_full(const struct asker *asker) {
        return asker->asked - asker->printed == asker->ring_size;
}

static void ask_lines(struct asker *asker) {
        const char *line;
        size_t len;

        while (!asker->is_over && !ring_is_full(asker) && tr_lines_peek(&asker->lines, &line, &len)) {
                if (!ask_line(asker, line, len))
                        return;
                tr_lines_drop(&asker->lines, len);
                asked_of(asker, asker->asked - 1)->bytes = asker->lines.dropped;
        }
}

/* All answers whose turn it is. */
static void print_answers(struct asker *asker) {
        while (!asker->is_over && asker->printed < asker->asked) {
                struct tr_reply *reply = reply_of(asker, asker->printed);

                if (!reply->is_done)
                        break;
                asker->printed_bytes = asked_of(asker, asker->printed)->bytes;
                asker->printed++;
                if (reply->problem.is_set) {
                        fail(asker, asker->printed, &reply->problem);
                } else {
                        tr_progress_make_way(&asker->progress);
                        asker->status = tr_show_answer(asker->invocation, &reply->value, asker->how);
                        asker->is_over = asker->status;
                }
                tr_reply_deinit(reply);
        }
}

static void read_lines(struct asker *asker) {
        int r = tr_lines_read(&asker->lines, STDIN_FILENO);
        struct tr_problem problem = { 0 };

        if (!r)
                return;
        tr_problem_say(&problem, TR_EXIT_FAILED, tr_code_text(TR_CODE_INTERNAL), strerror(-r));
        fail(asker, asker->asked + 1, &problem);
        tr_problem_deinit(&problem);
}

static bool is_done(struct asker *asker) {
        const char *line;
        size_t len;

        return asker->is_over ||
               (asker->printed == asker->asked && asker->lines.is_over && !tr_lines_peek(&asker->lines, &line, &len));
}

static void step(struct asker *asker) {
        struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
        bool wants_input = !asker->lines.is_over && !ring_is_full(asker);

        /* What is printed so far is out before anything is waited for. */
        asker->status = tr_show_end(asker->invocation);
        if (asker->status) {
                asker->is_over = true;
                return;
        }
        if (tr_link_step(asker->invocation, wants_input ? &input : NULL, -1) == TR_STEP_INTERRUPTED) {
                asker->is_over = true;
                tr_progress_clear(&asker->progress);
                fprintf(stderr, "troupe: ask: cancelled: interrupted behind line %" PRIu64 "\n", asker->printed);
                asker->status = tr_interrupt_exit();
                return;
        }
        if (wants_input && input.revents)
                read_lines(asker);
        tr_progress_update(&asker->progress, asker->printed, "lines", asker->printed_bytes);
}

/* What nobody waits for any more. */
static void take_back(struct asker *asker) {
        size_t count = asker->asked - asker->printed;
        struct tr_reply **replies = calloc(count + 1, sizeof(*replies));

        for (size_t i = 0; replies && i < count; i++)
                replies[i] = reply_of(asker, asker->printed + i);
        if (replies)
                tr_link_take_back(asker->invocation, replies, count);
        free(replies);
}

int tr_ask_lines(struct tr_invocation *invocation, enum tr_message_form form, uint64_t parallel, bool raw) {
        struct asker asker = {
                .invocation = invocation,
                .form = form,
                .how = raw ? TR_SHOW_RAW_LINES : TR_SHOW_JSON,
                .ring = calloc(parallel, sizeof(*asker.ring)),
                .ring_size = parallel,
        };

        if (!asker.ring)
                return tr_report_errno(invocation, -ENOMEM);
        tr_progress_expect(&asker.progress, STDIN_FILENO);
        for (;;) {
                print_answers(&asker);
                ask_lines(&asker);
                print_answers(&asker); /* of a line that could not be asked: nobody will answer it */
                if (is_done(&asker))
                        break;
                step(&asker);
        }
        tr_progress_clear(&asker.progress);
        take_back(&asker);
        /* its callbacks are about the ring */
        tr_link_close(invocation);
        for (uint64_t line = asker.printed; line < asker.asked; line++)
                tr_reply_deinit(reply_of(&asker, line));
        free(asker.ring);
        tr_lines_deinit(&asker.lines);
        return asker.status;
}
