/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection of a command.
 *
 * Even a command that asks once uses the calls with callbacks, because a wait must end on an interrupt as well, and
 * then the request has to be taken back before the program goes: closing the connection alone would leave a handler
 * that is running to run, and a `spawn` to finish.
 */
#include "client/command/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/command/command.h"
#include "client/command/interrupt.h"
#include "client/socket.h"
#include "config.h"
#include "proto/code.h"

/* How long an interrupted command waits for what the daemon says to that. */
#define PATIENCE_MS 1000

static int find_paths(const struct tr_invocation *invocation, struct tr_socket_paths *ret_paths) {
        const char *path = invocation->is_system ? tr_socket_path_system() : invocation->path;

        if (!path && !invocation->is_user)
                return tr_socket_paths_default(ret_paths);
        ret_paths->count = 1;
        if (!path)
                return tr_socket_path_user(ret_paths->path[0], sizeof(ret_paths->path[0]));
        if (strlen(path) >= sizeof(ret_paths->path[0]))
                return -ENAMETOOLONG;
        strcpy(ret_paths->path[0], path);
        return 0;
}

static int report_no_paths(const struct tr_invocation *invocation, int r) {
        return tr_report_no_daemon(invocation, invocation->path ? invocation->path : "the socket of the environment",
                                   r);
}

static int connect_to(struct tr_invocation *invocation, const struct tr_socket_paths *paths) {
        char tried[2 * sizeof(paths->path[0]) + 8] = "";
        int r = -ENOENT;

        for (int i = 0; i < paths->count; i++) {
                r = troupe_connect(&invocation->troupe, paths->path[i], 0);
                if (!r)
                        return 0;
                snprintf(tried + strlen(tried), sizeof(tried) - strlen(tried), "%s%s", *tried ? " or " : "",
                         paths->path[i]);
                if (!tr_socket_is_absent(r))
                        break;
        }
        return r == -ENOMEM ? tr_report_errno(invocation, r) : tr_report_no_daemon(invocation, tried, r);
}

/* Its answer is waited for only where it asks for something that the daemon may refuse. */
static int say_hello(struct tr_invocation *invocation) {
        struct troupe_hello_options options = {
                .size = sizeof(options),
                .client = "troupe " PACKAGE_VERSION,
                .timeout_ms = invocation->timeout_ms,
        };
        struct tr_reply reply = { 0 };
        int status;

        if (!options.timeout_ms)
                return troupe_hello_async(invocation->troupe, &options, NULL, NULL, NULL) ? TR_EXIT_FAILED : 0;
        status = tr_link_wait(
                invocation, troupe_hello_async(invocation->troupe, &options, tr_link_on_reply, &reply, &reply.pending),
                &reply);
        tr_reply_deinit(&reply);
        return status;
}

int tr_link_open(struct tr_invocation *invocation) {
        struct tr_socket_paths paths;
        int r = find_paths(invocation, &paths);

        if (r)
                return report_no_paths(invocation, r);
        tr_interrupt_install();
        r = connect_to(invocation, &paths);
        return r ? r : say_hello(invocation);
}

void tr_link_be_plain(struct tr_invocation *invocation) {
        /* where this cannot be sent, nothing behind it can */
        (void)troupe_request_async(invocation->troupe, "hello", NULL, NULL, NULL, "{ss}", "values", "plain");
}

void tr_link_close(struct tr_invocation *invocation) {
        troupe_free(invocation->troupe);
        invocation->troupe = NULL;
}

static int sooner(int a_ms, int b_ms) {
        return a_ms < 0 ? b_ms : b_ms < 0 || a_ms < b_ms ? a_ms : b_ms;
}

enum tr_step tr_link_step_with(struct tr_invocation *invocation, struct pollfd *others, size_t count, int timeout_ms) {
        struct troupe *troupe = invocation->troupe;
        struct pollfd few[2], *fds = count < 2 ? few : calloc(count + 1, sizeof(*fds));
        short revents;
        int r;

        if (!fds) { /* the others wait */
                fds = few;
                count = 0;
        }
        fds[0] = (struct pollfd){ .fd = troupe_fd(troupe), .events = troupe_events(troupe) };
        if (count)
                memcpy(fds + 1, others, count * sizeof(*fds));
        r = tr_interrupt_poll(fds, count + 1, sooner(timeout_ms, troupe_timeout_ms(troupe)));
        revents = fds[0].revents;
        if (r >= 0 && count)
                memcpy(others, fds + 1, count * sizeof(*fds));
        if (fds != few)
                free(fds);
        if (r < 0 && errno == EINTR)
                return tr_interrupt_happened() ? TR_STEP_INTERRUPTED : TR_STEP_DONE;
        do
                r = troupe_process(troupe, revents);
        while (r > 0);
        return r == -ENOTCONN ? TR_STEP_OVER : TR_STEP_DONE;
}

enum tr_step tr_link_step(struct tr_invocation *invocation, struct pollfd *other, int timeout_ms) {
        return tr_link_step_with(invocation, other, other ? 1 : 0, timeout_ms);
}

void tr_link_on_reply(struct troupe *troupe, int result, const struct troupe_value *answer, void *userdata) {
        struct tr_reply *reply = userdata;

        reply->is_done = true;
        reply->pending = NULL;
        if (!result)
                result = troupe_value_dup(answer, &reply->value);
        if (result)
                tr_problem_set(&reply->problem, troupe, result);
}

static int64_t now_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void tr_link_take_back(struct tr_invocation *invocation, struct tr_reply *const *replies, size_t count) {
        int64_t until_ms = now_ms() + PATIENCE_MS, left_ms = PATIENCE_MS;

        for (size_t i = 0; i < count; i++)
                if (!replies[i]->is_done)
                        troupe_cancel(replies[i]->pending);
        for (size_t i = 0; i < count; i++)
                while (!replies[i]->is_done) {
                        if (left_ms <= 0 || tr_link_step(invocation, NULL, left_ms) == TR_STEP_OVER)
                                return;
                        left_ms = until_ms - now_ms();
                }
}

static void take_back(struct tr_invocation *invocation, struct tr_reply *reply) {
        tr_link_take_back(invocation, &reply, 1);
        if (reply->is_done)
                return;
        /* its callback is about the reply, which does not outlive this */
        tr_link_close(invocation);
        tr_problem_say(&reply->problem, tr_interrupt_exit(), tr_code_text(TR_CODE_CANCELLED),
                       "interrupted, and the daemon said nothing to that");
}

int tr_link_wait(struct tr_invocation *invocation, int r, struct tr_reply *reply) {
        bool was_interrupted = false;

        if (r) {
                tr_problem_set(&reply->problem, invocation->troupe, r);
                return tr_problem_report(&reply->problem, invocation, 0);
        }
        while (!reply->is_done && !was_interrupted)
                was_interrupted = tr_link_step(invocation, NULL, -1) == TR_STEP_INTERRUPTED;
        if (!reply->is_done)
                take_back(invocation, reply);
        if (!reply->problem.is_set)
                return 0;
        tr_problem_report(&reply->problem, invocation, 0);
        return was_interrupted ? tr_interrupt_exit() : reply->problem.exit;
}

void tr_reply_deinit(struct tr_reply *reply) {
        tr_problem_deinit(&reply->problem);
        troupe_value_free(&reply->value);
}
