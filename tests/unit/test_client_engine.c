/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks: each exactly once, whatever the other side and the callbacks themselves do. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/troupe.h"
#include "tests/unit/peer.h"
#include "tests/unit/suite.h"

/* What a callback was told, as text: "5" or "!disconnected/1" or "#-12". */
struct told {
        int times;
        char text[80];
        void (*then)(struct troupe *troupe, struct told *told);
        struct told *other;
        int result; /* of what `then` tried */
};

/* All that was told, in order. */
static char order[1024];

static void on_answer(struct troupe *troupe, int result, const struct troupe_value *answer, void *userdata) {
        const struct troupe_error *error = troupe_error(troupe);
        struct told *told = userdata;
        char *json;

        told->times++;
        if (!result) {
                ck_assert_ptr_null(error);
                ck_assert_int_eq(troupe_value_json(answer, &json, NULL), 0);
                snprintf(told->text, sizeof(told->text), "%s", json);
                free(json);
        } else if (result == -EREMOTEIO) {
                ck_assert_ptr_null(answer);
                snprintf(told->text, sizeof(told->text), "!%s/%d", error->code, error->ran);
        } else {
                snprintf(told->text, sizeof(told->text), "#%d", result);
        }
        strcat(order, told->text);
        strcat(order, " ");
        if (told->then)
                told->then(troupe, told);
}

static void ask(struct troupe *troupe, struct told *told) {
        ck_assert_int_eq(troupe_request_async(troupe, "ask", on_answer, told, NULL, NULL), 0);
}

static void begin(struct peer *peer, struct troupe **ret_troupe) {
        order[0] = '\0';
        peer_init(peer, 8);
        *ret_troupe = peer_connect(peer, 0, "{}");
}

static void end(struct peer *peer, struct troupe *troupe) {
        troupe_free(troupe);
        peer_deinit(peer);
}

START_TEST(answers_in_any_order_find_their_callbacks) {
        struct told told[100] = { 0 };
        struct peer peer;
        struct troupe *t;
        char text[8];

        begin(&peer, &t);
        for (int i = 0; i < 100; i++)
                ask(t, &told[i]);
        ck_assert_int_eq(troupe_process(t, 0), 0);
        for (int i = 99; i >= 0; i--) {
                snprintf(text, sizeof(text), "%d", i);
                peer_answer(&peer, i + 1, "null", text);
        }
        ck_assert_int_eq(told[0].times, 0);
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
        for (int i = 0; i < 100; i++) {
                snprintf(text, sizeof(text), "%d", i);
                ck_assert_int_eq(told[i].times, 1);
                ck_assert_str_eq(told[i].text, text);
        }
        ck_assert_int_eq(strncmp(order, "99 98 97", 8), 0);
        /* a second answer, and one to nobody */
        peer_answer(&peer, 1, "null", "1");
        peer_answer(&peer, 4000000000, "null", "1");
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
        ck_assert_int_eq(told[0].times, 1);
        end(&peer, t);
        ck_assert_int_eq(told[0].times, 1);
}
END_TEST

START_TEST(half_a_frame_waits_for_the_other) {
        struct told told = { 0 };
        struct troupe_value frame;
        struct peer peer;
        struct troupe *t;

        begin(&peer, &t);
        ask(t, &told);
        ck_assert_int_eq(troupe_pack(&frame, "[iins]", 1, 1, "whole"), 0);
        for (size_t i = 0; i < frame.size; i++) {
                ck_assert_int_eq(told.times, 0);
                peer_write(&peer, (const char *)frame.data + i, 1);
                ck_assert_int_eq(troupe_process(t, POLLIN), 0);
        }
        ck_assert_str_eq(order, "\"whole\" ");
        troupe_value_free(&frame);
        end(&peer, t);
}
END_TEST

START_TEST(garbage_ends_the_connection_and_every_request) {
        struct told told[3] = { 0 };
        struct peer peer;
        struct troupe *t;

        begin(&peer, &t);
        for (int i = 0; i < 3; i++)
                ask(t, &told[i]);
        peer_answer(&peer, 2, "null", "2");
        peer_write(&peer, "GET / HTTP/1.1\r\n\r\n", 18);
        peer_answer(&peer, 3, "null", "3");
        ck_assert_int_eq(troupe_process(t, POLLIN), -ENOTCONN);
        ck_assert_str_eq(order, "2 !disconnected/1 !disconnected/1 ");
        ck_assert_int_eq(troupe_request_async(t, "ask", on_answer, told, NULL, NULL), -ENOTCONN);
        ck_assert_int_eq(troupe_process(t, POLLIN), -ENOTCONN);
        end(&peer, t);
        for (int i = 0; i < 3; i++)
                ck_assert_int_eq(told[i].times, 1);
}
END_TEST

START_TEST(a_peer_that_goes_ends_every_request_later) {
        struct told told[2] = { 0 };
        struct peer peer;
        struct troupe *t;

        begin(&peer, &t);
        peer_answer(&peer, 1, "null", "1");
        peer_close(&peer);
        ask(t, &told[0]);
        ask(t, &told[1]);
        ck_assert_str_eq(order, "");
        while (troupe_process(t, POLLIN) >= 0)
                ;
        ck_assert_str_eq(order, "1 !disconnected/1 ");
        end(&peer, t);
        ck_assert_int_eq(told[0].times + told[1].times, 2);
}
END_TEST

START_TEST(freeing_runs_what_has_not_run) {
        struct told told[2] = { 0 };
        struct peer peer;
        struct troupe *t;

        begin(&peer, &t);
        ask(t, &told[0]);
        ask(t, &told[1]);
        troupe_free(t);
        ck_assert_str_eq(order, "!disconnected/1 !disconnected/1 ");
        peer_deinit(&peer);
}
END_TEST

static void then_free(struct troupe *troupe, struct told *told) {
        troupe_free(troupe);
        troupe_free(told->other ? NULL : troupe); /* again, from inside */
        told->result = told->times;
}

START_TEST(a_callback_may_free_the_connection) {
        struct told told[3] = { { .then = NULL }, { .then = then_free }, { .then = NULL } };
        struct peer peer;
        struct troupe *t;

        begin(&peer, &t);
        for (int i = 0; i < 3; i++)
                ask(t, &told[i]);
        for (int i = 0; i < 3; i++)
                peer_answer(&peer, i + 1, "null", "0");
        ck_assert_int_eq(troupe_process(t, POLLIN), -ENOTCONN);
        ck_assert_str_eq(order, "0 0 !disconnected/1 ");
        peer_deinit(&peer);
}
END_TEST

START_TEST(a_callback_may_free_the_connection_that_is_being_freed) {
        struct told told[2] = { { .then = then_free }, { .then = then_free } };
        struct peer peer;
        struct troupe *t;

        begin(&peer, &t);
        ask(t, &told[0]);
        ask(t, &told[1]);
        troupe_free(t);
        ck_assert_str_eq(order, "!disconnected/1 !disconnected/1 ");
        peer_deinit(&peer);
}
END_TEST

static void then_ask(struct troupe *troupe, struct told *told) {
        told->result = troupe_request_async(troupe, "ask", on_answer, told->other, NULL, NULL);
}

START_TEST(a_callback_may_ask_again) {
        struct told second = { 0 }, first = { .then = then_ask, .other = &second };
        struct peer peer;
        struct troupe *t;
        char *heard;

        begin(&peer, &t);
        ask(t, &first);
        peer_answer(&peer, 1, "null", "1");
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
        ck_assert_int_eq(first.result, 0);
        heard = peer_heard(&peer);
        ck_assert_str_eq(heard, "[0,1,\"ask\",[]]\n[0,2,\"ask\",[]]\n");
        free(heard);
        peer_answer(&peer, 2, "null", "2");
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
        ck_assert_str_eq(order, "1 2 ");
        end(&peer, t);
}
END_TEST

START_TEST(nothing_can_be_asked_of_what_is_being_freed) {
        struct told second = { 0 }, first = { .then = then_ask, .other = &second };
        struct peer peer;
        struct troupe *t;

        begin(&peer, &t);
        ask(t, &first);
        troupe_free(t);
        ck_assert_int_eq(first.result, -ENOTCONN);
        ck_assert_int_eq(second.times, 0);
        peer_deinit(&peer);
}
END_TEST

static void then_wait(struct troupe *troupe, struct told *told) {
        told->result = troupe_request(troupe, "ping", NULL, NULL);
        ck_assert_int_eq(troupe_process(troupe, POLLIN), 0);
}

START_TEST(a_callback_may_not_wait) {
        struct told told[2] = { { .then = then_wait }, { .then = NULL } };
        struct peer peer;
        struct troupe *t;

        begin(&peer, &t);
        ask(t, &told[0]);
        ask(t, &told[1]);
        peer_answer(&peer, 1, "null", "1");
        peer_answer(&peer, 2, "null", "2");
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
        ck_assert_int_eq(told[0].result, -EDEADLK);
        ck_assert_str_eq(order, "1 2 ");
        end(&peer, t);
}
END_TEST

START_TEST(a_call_that_waits_keeps_the_answers_of_others) {
        struct told told[3] = { 0 };
        struct troupe_value answer;
        struct peer peer;
        struct troupe *t;
        int64_t number;

        begin(&peer, &t);
        for (int i = 0; i < 3; i++)
                ask(t, &told[i]);
        peer_answer(&peer, 3, "null", "3");
        peer_answer(&peer, 1, "\"fault: it broke (ran: yes)\"", "null");
        peer_answer(&peer, 4, "null", "4");
        ck_assert_int_eq(troupe_request(t, "ask", &answer, NULL), 0);
        ck_assert_int_eq(troupe_value_int(&answer, &number), 0);
        ck_assert_int_eq(number, 4);
        ck_assert_str_eq(order, "");
        ck_assert_int_eq(troupe_timeout_ms(t), 0);
        ck_assert_int_eq(troupe_process(t, 0), 0);
        ck_assert_str_eq(order, "3 !fault/2 ");
        ck_assert_int_eq(troupe_timeout_ms(t), -1);
        peer_close(&peer);
        ck_assert_int_eq(troupe_request(t, "ask", &answer, NULL), -EREMOTEIO);
        ck_assert_str_eq(order, "3 !fault/2 ");
        ck_assert_int_eq(troupe_timeout_ms(t), 0);
        ck_assert_int_eq(troupe_process(t, 0), -ENOTCONN);
        ck_assert_str_eq(order, "3 !fault/2 !disconnected/1 ");
        end(&peer, t);
}
END_TEST

START_TEST(an_answer_that_was_kept_survives_freeing) {
        struct told told = { 0 };
        struct peer peer;
        struct troupe *t;

        begin(&peer, &t);
        ask(t, &told);
        peer_answer(&peer, 1, "null", "1");
        peer_answer(&peer, 2, "null", "2");
        ck_assert_int_eq(troupe_request(t, "ask", NULL, NULL), 0);
        troupe_free(t);
        ck_assert_str_eq(order, "1 ");
        peer_deinit(&peer);
}
END_TEST

START_TEST(a_request_that_is_taken_back_still_ends_once) {
        struct troupe_pending *pending;
        struct told told = { 0 };
        struct peer peer;
        struct troupe *t;
        char *heard;

        begin(&peer, &t);
        ck_assert_int_eq(troupe_ask_async(t, "x", "y", NULL, on_answer, &told, &pending, NULL), 0);
        ck_assert_int_eq(troupe_cancel(pending), 0);
        ck_assert_int_eq(troupe_process(t, 0), 0);
        heard = peer_heard(&peer);
        ck_assert_str_eq(heard, "[0,1,\"ask\",[\"x\",\"y\",[]]]\n[2,\"cancel\",[1]]\n");
        free(heard);
        ck_assert_int_eq(told.times, 0);
        peer_answer(&peer, 1, "{\"code\":\"cancelled\",\"message\":\"taken back\",\"ran\":\"no\"}", "null");
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
        ck_assert_str_eq(order, "!cancelled/0 ");
        end(&peer, t);
}
END_TEST

static void on_room(struct troupe *troupe, void *userdata) {
        ++*(int *)userdata;
}

START_TEST(there_is_a_bound_to_what_is_not_answered) {
        struct told told[4] = { 0 };
        struct peer peer;
        struct troupe *t;
        int rooms = 0;
        char *heard;

        begin(&peer, &t);
        ck_assert_int_eq(troupe_process(t, POLLIN), 0); /* the hello is answered */
        ck_assert_int_eq(troupe_set_limits(t, 4, 0), 0);
        ck_assert_int_eq(troupe_on_room(t, on_room, &rooms), 0);
        for (int i = 0; i < 4; i++)
                ask(t, &told[i]);
        ck_assert_int_eq(troupe_request_async(t, "ask", on_answer, told, NULL, NULL), -ENOBUFS);
        ck_assert_int_eq(troupe_notify(t, "send", NULL), -ENOBUFS);
        ck_assert_int_eq(troupe_process(t, 0), 0);
        heard = peer_heard(&peer);
        ck_assert_str_eq(heard, "[0,1,\"ask\",[]]\n[0,2,\"ask\",[]]\n[0,3,\"ask\",[]]\n[0,4,\"ask\",[]]\n");
        free(heard);
        peer_answer(&peer, 1, "null", "1");
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
        ck_assert_int_eq(rooms, 0);
        peer_answer(&peer, 2, "null", "2");
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
        ck_assert_int_eq(rooms, 1);
        peer_answer(&peer, 3, "null", "3");
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
        ck_assert_int_eq(rooms, 1);
        end(&peer, t);
        ck_assert_int_eq(rooms, 1);
}
END_TEST

/* Whether a request of that id is among what comes next. Waits for something to come. */
static bool has_heard(struct peer *peer, uint32_t id) {
        struct pollfd poll_fd = { peer->fd, POLLIN, 0 };
        char start[24], *heard;
        bool has;

        ck_assert_int_eq(poll(&poll_fd, 1, -1), 1);
        snprintf(start, sizeof(start), "[0,%u,", id);
        heard = peer_heard(peer);
        has = strstr(heard, start);
        free(heard);
        return has;
}

START_TEST(a_call_that_waits_waits_for_room_too) {
        struct told told[2] = { 0 };
        struct peer peer;
        struct troupe *t;
        pid_t pid;

        begin(&peer, &t);
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
        ck_assert_int_eq(troupe_set_limits(t, 2, 0), 0);
        ask(t, &told[0]);
        ask(t, &told[1]);
        peer_answer(&peer, 2, "null", "2");
        pid = fork();
        if (!pid) {
                while (!has_heard(&peer, 3))
                        ;
                peer_answer(&peer, 3, "null", "3");
                _exit(0);
        }
        ck_assert_int_eq(troupe_request(t, "ask", NULL, NULL), 0);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        ck_assert_str_eq(order, "");
        end(&peer, t);
        ck_assert_str_eq(order, "2 !disconnected/1 ");
}
END_TEST

START_TEST(the_daemons_own_bound_holds) {
        struct told told[3] = { 0 };
        struct peer peer;
        struct troupe *t;

        order[0] = '\0';
        peer_init(&peer, 1);
        t = peer_connect(&peer, 0, "{\"requests\":2,\"frame\":16777216}");
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
        ask(t, &told[0]);
        ask(t, &told[1]);
        ck_assert_int_eq(troupe_request_async(t, "ask", on_answer, &told[2], NULL, NULL), -ENOBUFS);
        end(&peer, t);
        ck_assert_int_eq(told[2].times, 0);
}
END_TEST

START_TEST(there_is_a_bound_to_what_is_not_taken) {
        static char text[100000];
        struct peer peer;
        struct troupe *t;
        int r, rooms = 0, sent = 0;
        char *heard;

        begin(&peer, &t);
        ck_assert_int_eq(troupe_set_limits(t, 0, 1 << 20), 0);
        ck_assert_int_eq(troupe_on_room(t, on_room, &rooms), 0);
        while (!(r = troupe_notify(t, "send", "S", text, sizeof(text))))
                sent++;
        ck_assert_int_eq(r, -ENOBUFS);
        ck_assert_int_ge(sent, 10);
        ck_assert_int_eq(troupe_events(t), POLLIN | POLLOUT);
        while (!rooms) {
                heard = peer_heard(&peer);
                free(heard);
                ck_assert_int_eq(troupe_process(t, POLLIN | POLLOUT), 0);
        }
        ck_assert_int_eq(troupe_notify(t, "send", NULL), 0);
        end(&peer, t);
}
END_TEST

START_TEST(what_the_daemon_asks_is_answered_and_what_it_says_is_ignored) {
        struct peer peer;
        struct troupe *t;
        char *heard;

        begin(&peer, &t);
        peer_write(&peer,
                   "\x94\x00\x07\xa4"
                   "call\x90",
                   9);
        peer_write(&peer,
                   "\x93\x02\xa5"
                   "event\x90",
                   9);
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
        heard = peer_heard(&peer);
        ck_assert_str_eq(heard, "[1,7,\"unknown-method\",null]\n");
        free(heard);
        end(&peer, t);
}
END_TEST

START_TEST(an_event_loop_sees_it_through) {
        struct told told = { 0 };
        struct pollfd poll_fd;
        struct peer peer;
        struct troupe *t;

        begin(&peer, &t);
        ask(t, &told);
        ck_assert_int_eq(troupe_events(t), POLLIN | POLLOUT);
        peer_answer(&peer, 1, "null", "1");
        while (!told.times) {
                poll_fd = (struct pollfd){ troupe_fd(t), troupe_events(t), 0 };
                ck_assert_int_eq(poll(&poll_fd, 1, troupe_timeout_ms(t)), 1);
                ck_assert_int_ge(troupe_process(t, poll_fd.revents), 0);
        }
        ck_assert_int_eq(troupe_events(t), POLLIN);
        end(&peer, t);
}
END_TEST

START_TEST(a_full_backlog_is_waited_for_without_blocking) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct told told = { 0 };
        struct peer peer;
        struct troupe *t;
        int fd, count = 0, fds[64];

        order[0] = '\0';
        peer_init(&peer, 0);
        strcpy(address.sun_path, peer.path);
        for (;;) {
                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
                if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
                        break;
                fds[count++] = fd;
                ck_assert_int_lt(count, 64);
        }
        close(fd);
        ck_assert_int_eq(troupe_connect(&t, peer.path, TROUPE_NONBLOCK), 0);
        ck_assert_int_eq(troupe_fd(t), -EAGAIN);
        ck_assert_int_eq(troupe_events(t), 0);
        ck_assert_int_gt(troupe_timeout_ms(t), 0);
        ask(t, &told);
        ck_assert_int_eq(troupe_process(t, 0), 0);
        ck_assert_int_eq(troupe_fd(t), -EAGAIN);
        while (count--) {
                peer_accept(&peer);
                peer_close(&peer);
                close(fds[count]);
        }
        ck_assert_int_eq(troupe_process(t, 0), 0);
        ck_assert_int_ge(troupe_fd(t), 0);
        peer_accept(&peer);
        peer_answer(&peer, 1, "null", "1");
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
        ck_assert_str_eq(order, "1 ");
        end(&peer, t);
}
END_TEST

START_TEST(a_request_that_waits_long_keeps_its_place_while_others_pass) {
        struct told old = { 0 }, passing = { 0 };
        struct peer peer;
        struct troupe *t;
        unsigned int id;
        char *heard;

        begin(&peer, &t);
        ask(t, &old);
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
        free(peer_heard(&peer));
        for (int i = 0; i < 200; i++) {
                ask(t, &passing);
                ck_assert_int_eq(troupe_process(t, 0), 0);
                heard = peer_heard(&peer);
                ck_assert_int_eq(sscanf(heard, "[0,%u,", &id), 1);
                free(heard);
                ck_assert_uint_ne(id, 1);
                order[0] = '\0';
                peer_answer(&peer, id, "null", "2");
                ck_assert_int_eq(troupe_process(t, POLLIN), 0);
                ck_assert_str_eq(order, "2 ");
        }
        peer_answer(&peer, 1, "null", "1");
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
        ck_assert_str_eq(old.text, "1");
        ck_assert_int_eq(old.times, 1);
        end(&peer, t);
}
END_TEST

suite_main("client_engine", answers_in_any_order_find_their_callbacks, half_a_frame_waits_for_the_other,
           garbage_ends_the_connection_and_every_request, a_peer_that_goes_ends_every_request_later,
           freeing_runs_what_has_not_run, a_callback_may_free_the_connection,
           a_callback_may_free_the_connection_that_is_being_freed, a_callback_may_ask_again,
           nothing_can_be_asked_of_what_is_being_freed, a_callback_may_not_wait,
           a_call_that_waits_keeps_the_answers_of_others, an_answer_that_was_kept_survives_freeing,
           a_request_that_is_taken_back_still_ends_once, there_is_a_bound_to_what_is_not_answered,
           a_call_that_waits_waits_for_room_too, the_daemons_own_bound_holds, there_is_a_bound_to_what_is_not_taken,
           what_the_daemon_asks_is_answered_and_what_it_says_is_ignored, an_event_loop_sees_it_through,
           a_full_backlog_is_waited_for_without_blocking, a_request_that_waits_long_keeps_its_place_while_others_pass);
