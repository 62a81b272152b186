/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `top` does over and over: ask for the list, show it, wait for a key or until it is time again.
 *
 * The first answer is waited for before the terminal is taken over, and it is given back before anything is said: an
 * error is a line on the terminal as it was.
 */
#include "client/command/top.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/command/command.h"
#include "client/command/interrupt.h"
#include "client/command/link.h"
#include "client/command/report.h"
#include "client/command/top-screen.h"

#define CONTROL_L 12

struct top {
        struct tr_invocation *invocation;
        struct tr_top_view view;
        struct tr_reply reply;
        bool is_asked; /* the reply is under way */
        int64_t every_ms;
        int64_t next_ms; /* when it is asked for again */
        bool is_over;
        int error; /* a negative errno of this side */
};

static int64_t now_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int request(struct top *top) {
        struct tr_reply *reply = &top->reply;

        top->next_ms = now_ms() + top->every_ms;
        top->is_asked = true;
        *reply = (struct tr_reply){ 0 };
        return troupe_request_async(top->invocation->troupe, "list", tr_link_on_reply, reply, &reply->pending, NULL);
}

/* What was asked for is here, and is no error. */
static int take_answer(struct top *top) {
        struct tr_top_rows rows = { 0 };
        int r = tr_top_rows_read(&rows, &top->reply.value, now_ms(), &top->view.rows);

        top->is_asked = false;
        tr_reply_deinit(&top->reply);
        if (r)
                return r;
        tr_top_rows_deinit(&top->view.rows);
        top->view.rows = rows;
        tr_top_rows_sort(&top->view.rows, top->view.by, top->view.is_reversed);
        return 0;
}

static void sort_by(struct top *top, enum tr_top_column column) {
        struct tr_top_view *view = &top->view;

        view->is_reversed = view->by == column && !view->is_reversed;
        view->by = column;
        view->first = 0;
        tr_top_rows_sort(&view->rows, view->by, view->is_reversed);
}

/* Drawing sees to it that it is not too far down. */
static void move_by(struct tr_top_view *view, size_t rows, bool is_up) {
        view->first = !is_up ? view->first + rows : view->first > rows ? view->first - rows : 0;
}

static void on_key(struct top *top, int key) {
        enum tr_top_column column = tr_screen_column_of(key);

        if (column != TR_TOP_COLUMNS)
                sort_by(top, column);
        else if (key == 'q')
                top->is_over = true;
        else if (key == CONTROL_L)
                tr_screen_forget();
        else if (key == TR_KEY_UP || key == TR_KEY_DOWN)
                move_by(&top->view, 1, key == TR_KEY_UP);
        else if (key == TR_KEY_PAGE_UP || key == TR_KEY_PAGE_DOWN)
                move_by(&top->view, tr_screen_rows(), key == TR_KEY_PAGE_UP);
        else if (key == TR_KEY_HOME || key == TR_KEY_END)
                move_by(&top->view, top->view.rows.count, key == TR_KEY_HOME);
}

static int wait_ms(const struct top *top) {
        int64_t left_ms = top->next_ms - now_ms();

        return top->is_asked ? -1 : left_ms < 0 ? 0 : (int)left_ms;
}

/* Waits for something, and does what it asks for. */
static void step(struct top *top) {
        struct pollfd keyboard = { .fd = STDIN_FILENO, .events = POLLIN };
        enum tr_step what = tr_link_step(top->invocation, &keyboard, wait_ms(top));
        int key;

        /* where the connection is over, the reply that was under way says so, and so does the next one */
        if (what == TR_STEP_INTERRUPTED || keyboard.revents & (POLLHUP | POLLERR | POLLNVAL))
                top->is_over = true;
        while (!top->is_over && (key = tr_screen_key()) != TR_KEY_NONE)
                on_key(top, key);
        if (!top->is_asked && !top->is_over && (what == TR_STEP_OVER || top->next_ms <= now_ms()))
                top->error = request(top);
        if (top->is_asked && top->reply.is_done && !top->reply.problem.is_set)
                top->error = take_answer(top);
        top->is_over |= top->error || top->reply.problem.is_set;
}

static int report(struct top *top) {
        if (tr_interrupt_happened())
                return tr_interrupt_exit();
        if (!top->reply.problem.is_set && top->error)
                tr_problem_set(&top->reply.problem, top->invocation->troupe, top->error);
        return top->reply.problem.is_set ? tr_problem_report(&top->reply.problem, top->invocation, 0) : TR_EXIT_DONE;
}

static int watch(struct top *top) {
        const char *type = getenv("TERM");

        tr_interrupt_be_patient(true);
        if (!tr_screen_open()) {
                tr_interrupt_be_patient(false);
                return tr_report_usage(top->invocation,
                                       "a terminal of the type `%s` cannot do it; there is `troupe ls`",
                                       type ? type : "");
        }
        while (!top->is_over) {
                tr_screen_draw(&top->view);
                step(top);
        }
        tr_screen_close();
        tr_interrupt_be_patient(false);
        return report(top);
}

int tr_top(struct tr_invocation *invocation, uint64_t every_ms) {
        struct top top = { .invocation = invocation, .every_ms = every_ms, .view.by = TR_TOP_CPU };
        int status = tr_link_open(invocation);

        if (!status) {
                tr_link_be_plain(invocation);
                top.view.socket = troupe_path(invocation->troupe);
                status = tr_link_wait(invocation, request(&top), &top.reply);
        }
        if (!status && (top.error = take_answer(&top)))
                status = report(&top);
        if (!status)
                status = watch(&top);
        /* its callback is about the reply */
        tr_link_close(invocation);
        tr_reply_deinit(&top.reply);
        tr_top_rows_deinit(&top.view.rows);
        return status;
}
