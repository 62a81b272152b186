/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that breaks and is made again: what becomes of requests, what is restored, and what the program hears. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/troupe.h"
#include "tests/unit/peer.h"
#include "tests/unit/suite.h"

#define HELLO "\"hello\",[{\"protocol\":1,\"errors\":\"map\",\"values\":\"typed\"}]]\n"
#define HANDLE "actor:00112233445566778899aabbccddeeff"
#define OTHER_HANDLE "actor:0f112233445566778899aabbccddeeff"

/* All that callbacks were told, in order. */
static char told[4096];
static char a[] = "a", b[] = "b", c[] = "c", first[] = "first", second[] = "second";

static struct peer peer;
static struct troupe *t;

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...) {
        size_t length = strlen(told);
        va_list args;

        va_start(args, format);
        vsnprintf(told + length, sizeof(told) - length, format, args);
        va_end(args);
}

static void tell_value(const char *what, const struct troupe_value *value) {
        char *json;

        ck_assert_int_eq(troupe_value_json(value, &json, NULL), 0);
        tell("%s %s; ", what, json);
        free(json);
}

static const char *ran(void) {
        static const char *const words[] = { "no", "maybe", "yes" };

        return words[troupe_error(t)->ran];
}

static void on_answer(struct troupe *troupe, int result, const struct troupe_value *answer, void *userdata) {
        if (!result)
                tell_value(userdata, answer);
        else if (result == -EREMOTEIO)
                tell("%s %s %s; ", (const char *)userdata, troupe_error(troupe)->code, ran());
        else
                tell("%s %s; ", (const char *)userdata, strerror(-result));
}

static void on_link(struct troupe *troupe, enum troupe_link link, const char *method, const char *name,
                    void *userdata) {
        static const char *const words[] = { "LOST", "REFUSED", "RESTORED" };

        ck_assert_ptr_eq(userdata, told);
        ck_assert_int_eq(!troupe_error(troupe), link != TROUPE_LINK_REFUSED);
        if (link == TROUPE_LINK_REFUSED)
                tell("REFUSED %s %s: %s; ", method, name, troupe_error(troupe)->code);
        else
                tell("%s; ", words[link]);
}

static void on_event(struct troupe *troupe, const char *topic, const struct troupe_value *event, void *userdata) {
        tell_value(userdata, event);
}

static struct troupe_asked *asked;

static void on_message(struct troupe *troupe, const char *handler, const struct troupe_value *args,
                       struct troupe_asked *ask, void *userdata) {
        tell_value(handler, args);
        if (ask)
                asked = ask;
}

static void on_operation(struct troupe *troupe, const char *operation, const struct troupe_value *input,
                         const struct troupe_value *context, struct troupe_asked *ask, void *userdata) {
        tell_value(operation, input);
        ck_assert_int_eq(troupe_reply(ask, NULL), 0);
}

static void begin(void) {
        told[0] = '\0';
        peer_init(&peer, 8);
        t = peer_connect(&peer, TROUPE_RECONNECT, "{}");
        ck_assert_int_eq(troupe_on_link(t, on_link, told), 0);
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
        free(peer_heard_all(&peer));
}

static void end(void) {
        troupe_free(t);
        peer_deinit(&peer);
}

static void ask(char *name) {
        ck_assert_int_eq(troupe_request_async(t, name, on_answer, name, NULL, NULL), 0);
}

/* One step of a program's loop. */
static void step(void) {
        struct pollfd poll_fd = { troupe_fd(t), troupe_events(t), 0 };

        ck_assert_int_ge(poll(&poll_fd, 1, troupe_timeout_ms(t)), 0);
        ck_assert_int_ge(troupe_process(t, poll_fd.revents), 0);
}

static void must_tell(const char *expected) {
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
        ck_assert_str_eq(told, expected);
        told[0] = '\0';
}

static void must_hear(const char *expected) {
        char *heard;

        ck_assert_int_eq(troupe_process(t, 0), 0);
        heard = peer_heard_all(&peer);
        ck_assert_str_eq(heard, expected);
        free(heard);
}

static void break_it(void) {
        peer_close(&peer);
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
}

/* Until the library is there again. */
static void come_back(void) {
        struct pollfd poll_fd = { peer.listen_fd, POLLIN, 0 };

        while (!poll(&poll_fd, 1, 0))
                step();
        peer_accept(&peer);
}

START_TEST(a_request_says_what_is_known_of_it_and_is_never_sent_again) {
        begin();
        ask(a);
        must_hear("[0,1,\"a\",[]]\n");
        ask(b);
        peer_close(&peer);
        ck_assert_str_eq(told, "");
        must_tell("a disconnected maybe; b disconnected no; LOST; ");
        ck_assert_int_eq(troupe_fd(t), -EAGAIN);
        ck_assert_int_eq(troupe_events(t), 0);
        ask(c);
        must_tell("");
        come_back();
        must_hear("[0,3," HELLO "[0,4,\"c\",[]]\n");
        ck_assert_int_ge(troupe_fd(t), 0);
        peer_answer(&peer, 3, "null", "{}");
        peer_answer(&peer, 1, "null", "1");
        peer_answer(&peer, 4, "null", "4");
        must_tell("c 4; RESTORED; ");
        ck_assert_int_eq(troupe_timeout_ms(t), -1);
        end();
        ck_assert_str_eq(told, "");
}
END_TEST

START_TEST(a_frame_that_was_cut_in_two_was_never_sent) {
        static char text[8 << 20];
        char *heard;

        begin();
        memset(text, 'x', sizeof(text) - 1);
        ck_assert_int_eq(troupe_set_limits(t, 0, sizeof(text)), 0);
        ask(a);
        ck_assert_int_eq(troupe_request_async(t, "b", on_answer, b, NULL, "s", text), 0);
        ck_assert_int_eq(troupe_process(t, 0), 0);
        heard = peer_heard(&peer);
        ck_assert_str_eq(heard, "[0,1,\"a\",[]]\n");
        free(heard);
        break_it();
        must_tell("a disconnected maybe; b disconnected no; LOST; ");
        end();
}
END_TEST

START_TEST(without_the_flag_nothing_is_restored) {
        told[0] = '\0';
        peer_init(&peer, 8);
        t = peer_connect(&peer, 0, "{}");
        ck_assert_int_eq(troupe_on_link(t, on_link, told), 0);
        ask(a);
        peer_close(&peer);
        while (troupe_process(t, POLLIN) >= 0)
                ;
        ck_assert_str_eq(told, "a disconnected maybe; ");
        ck_assert_int_eq(troupe_fd(t), -ENOTCONN);
        ck_assert_int_eq(troupe_timeout_ms(t), -1);
        ck_assert_int_eq(troupe_on_link(t, on_link, told), -ENOTCONN);
        end();
}
END_TEST

static void agree_on_everything(void) {
        const struct troupe_hello_options hello = { .size = sizeof(hello), .client = "test" };
        const struct troupe_subscribe_options often = { .size = sizeof(often), .rate = 5 };
        const struct troupe_serve_options serve = { .size = sizeof(serve), .concurrency = 2 };

        peer_answer(&peer, 1, "null", "null");
        ck_assert_int_eq(troupe_hello(t, &hello, NULL), 0);
        peer_answer(&peer, 2, "null", "null");
        ck_assert_int_eq(troupe_subscribe(t, "log", NULL, on_event, first), 0);
        peer_answer(&peer, 3, "null", "null");
        ck_assert_int_eq(troupe_subscribe(t, "lifecycle", NULL, on_event, first), 0);
        peer_answer(&peer, 4, "null", "null");
        ck_assert_int_eq(troupe_subscribe(t, "log", &often, on_event, second), 0);
        peer_answer(&peer, 5, "null", "null");
        ck_assert_int_eq(troupe_unsubscribe(t, "lifecycle"), 0);
        peer_answer(&peer, 6, "\"denied: no (ran: no)\"", "null");
        ck_assert_int_eq(troupe_subscribe(t, "trace", NULL, on_event, first), -EREMOTEIO);
        peer_answer(&peer, 7, "null", "{\"$handle\":\"" HANDLE "\"}");
        ck_assert_int_eq(troupe_listen(t, on_message, NULL, NULL), 0);
        peer_answer(&peer, 8, "null", "null");
        ck_assert_int_eq(troupe_subscribe(t, "refused", NULL, on_event, first), 0);
        peer_answer(&peer, 9, "null", "null");
        ck_assert_int_eq(troupe_serve(t, "thumbs", &serve, on_operation, NULL, NULL), 0);
        free(peer_heard(&peer));
}

#define EVERYTHING(h, l, m, r, s)                                                                               \
        "[0," #h ",\"hello\",[{\"client\":\"test\",\"errors\":\"map\",\"values\":\"typed\",\"protocol\":1}]]\n" \
        "[0," #l ",\"subscribe\",[\"log\",{\"rate\":5}]]\n[0," #m ",\"listen\",[]]\n[0," #r                     \
        ",\"subscribe\",[\"refused\"]]\n"                                                                       \
        "[0," #s ",\"serve\",[\"thumbs\",{\"concurrency\":2}]]\n"

START_TEST(what_was_agreed_on_is_restored) {
        char handle[TROUPE_HANDLE_SIZE];

        begin();
        ck_assert_int_eq(troupe_own_handle(t, handle), -ENOENT);
        agree_on_everything();
        ck_assert_int_eq(troupe_own_handle(t, handle), 0);
        ck_assert_str_eq(handle, HANDLE);
        break_it();
        ck_assert_int_eq(troupe_own_handle(t, handle), -ENOENT);
        ask(a);
        come_back();
        must_hear("[0,10," HELLO EVERYTHING(11, 12, 13, 14, 15) "[0,16,\"a\",[]]\n");
        must_tell("LOST; ");
        for (uint32_t id = 10; id <= 14; id++)
                peer_answer(&peer, id, "null", id == 13 ? "{\"$handle\":\"" OTHER_HANDLE "\"}" : "{}");
        peer_notify(&peer, "event", "[\"log\", 1]");
        peer_notify(&peer, "event", "[\"lifecycle\", 2]");
        peer_notify(&peer, "event", "[\"refused\", 3]");
        peer_notify(&peer, "message", "[\"tick\", 4]");
        must_tell("second 1; first 3; tick [4]; ");
        peer_answer(&peer, 15, "null", "{}");
        peer_request(&peer, 1, "call", "[\"make\", 5, {\"component\":\"thumbs\"}]");
        must_tell("make 5; RESTORED; ");
        ck_assert_int_eq(troupe_own_handle(t, handle), 0);
        ck_assert_str_eq(handle, OTHER_HANDLE);
        end();
}
END_TEST

START_TEST(what_is_refused_then_is_told_and_not_asked_for_again) {
        begin();
        agree_on_everything();
        break_it();
        must_tell("LOST; ");
        come_back();
        must_hear("[0,10," HELLO EVERYTHING(11, 12, 13, 14, 15));
        peer_answer(&peer, 10, "null", "{}");
        peer_answer(&peer, 15, "{\"code\":\"taken\",\"message\":\"no\",\"ran\":\"no\"}", "null");
        peer_answer(&peer, 14, "{\"code\":\"denied\",\"message\":\"no\",\"ran\":\"no\"}", "null");
        peer_answer(&peer, 13, "null", "{\"$handle\":\"" HANDLE "\"}");
        peer_answer(&peer, 12, "null", "null");
        must_tell("REFUSED subscribe refused: denied; REFUSED serve thumbs: taken; ");
        peer_answer(&peer, 11, "{\"code\":\"bad-request\",\"message\":\"no\",\"ran\":\"no\"}", "null");
        peer_notify(&peer, "event", "[\"refused\", 3]");
        must_tell("REFUSED hello : bad-request; RESTORED; ");
        break_it();
        must_tell("LOST; ");
        come_back();
        must_hear("[0,16," HELLO "[0,17,\"subscribe\",[\"log\",{\"rate\":5}]]\n[0,18,\"listen\",[]]\n");
        end();
}
END_TEST

START_TEST(what_is_agreed_on_while_there_is_no_connection_is_kept_too) {
        begin();
        agree_on_everything();
        break_it();
        ck_assert_int_eq(troupe_unsubscribe_async(t, "log", NULL, NULL, NULL), 0);
        ck_assert_int_eq(troupe_subscribe_async(t, "refused", NULL, on_event, second, NULL, NULL, NULL), 0);
        come_back();
        must_hear("[0,10," HELLO EVERYTHING(
                11, 12, 13, 14, 15) "[0,16,\"unsubscribe\",[\"log\"]]\n[0,17,\"subscribe\",[\"refused\"]]\n");
        /* even where the daemon answers the later first */
        for (uint32_t id = 17; id >= 10; id--)
                peer_answer(&peer, id, "null", "{}");
        peer_notify(&peer, "event", "[\"log\", 1]");
        peer_notify(&peer, "event", "[\"refused\", 2]");
        must_tell("LOST; second 2; RESTORED; ");
        break_it();
        must_tell("LOST; ");
        come_back();
        must_hear("[0,18," HELLO
                  "[0,19,\"hello\",[{\"client\":\"test\",\"errors\":\"map\",\"values\":\"typed\",\"protocol\":1}]]\n"
                  "[0,20,\"listen\",[]]\n[0,21,\"serve\",[\"thumbs\",{\"concurrency\":2}]]\n"
                  "[0,22,\"subscribe\",[\"refused\"]]\n");
        end();
}
END_TEST

START_TEST(an_end_that_the_break_left_unanswered_is_an_end) {
        begin();
        peer_answer(&peer, 1, "null", "null");
        ck_assert_int_eq(troupe_subscribe(t, "log", NULL, on_event, first), 0);
        ck_assert_int_eq(troupe_subscribe_async(t, "lifecycle", NULL, on_event, first, on_answer, a, NULL), 0);
        ck_assert_int_eq(troupe_unsubscribe_async(t, "log", on_answer, b, NULL), 0);
        break_it();
        must_tell("a disconnected no; b disconnected no; LOST; ");
        come_back();
        must_hear("[0,4," HELLO);
        end();
}
END_TEST

START_TEST(nobody_there_is_tried_less_and_less_often) {
        begin();
        peer_unlisten(&peer);
        break_it();
        ask(a);
        while (troupe_timeout_ms(t) <= 100) {
                ck_assert_int_ge(troupe_timeout_ms(t), 0);
                step();
        }
        ck_assert_str_eq(told, "LOST; ");
        peer_listen(&peer, 8);
        come_back();
        must_hear("[0,1," HELLO "[0,2,\"a\",[]]\n");
        end();
        ck_assert_str_eq(told, "LOST; a disconnected maybe; ");
}
END_TEST

START_TEST(freeing_says_what_was_never_sent) {
        begin();
        break_it();
        ask(a);
        end();
        ck_assert_str_eq(told, "LOST; a disconnected no; ");
}
END_TEST

START_TEST(a_program_hears_of_it_once_each_time) {
        begin();
        for (uint32_t id = 1; id <= 3; id++) {
                break_it();
                must_tell("LOST; ");
                come_back();
                break_it(); /* before anything was restored */
                must_tell("");
                come_back();
                free(peer_heard_all(&peer));
                peer_answer(&peer, 2 * id, "null", "{}");
                must_tell("RESTORED; ");
        }
        end();
}
END_TEST

START_TEST(a_daemon_that_has_no_room_is_tried_again) {
        begin();
        break_it();
        ask(a);
        come_back();
        must_hear("[0,1," HELLO "[0,2,\"a\",[]]\n");
        peer_answer(&peer, 1, "{\"code\":\"limit\",\"message\":\"too many connections\",\"ran\":\"no\"}", "null");
        must_tell("LOST; a limit no; ");
        peer_close(&peer);
        come_back();
        must_hear("[0,3," HELLO);
        peer_answer(&peer, 3, "null", "{}");
        must_tell("RESTORED; ");
        end();
}
END_TEST

START_TEST(a_daemon_that_speaks_another_protocol_is_not) {
        begin();
        break_it();
        ask(a);
        come_back();
        peer_answer(&peer, 1, "{\"code\":\"bad-request\",\"message\":\"protocol\",\"ran\":\"no\"}", "null");
        ck_assert_int_eq(troupe_process(t, POLLIN), -ENOTCONN);
        ck_assert_str_eq(told, "LOST; a bad-request no; ");
        end();
}
END_TEST

/* In a process of its own: takes the connection that comes, and answers the requests on it in order, whatever they
 * are, until `last` has come; that one is not answered but the connection closed. */
static pid_t fork_peer(const char *last) {
        pid_t pid = fork();

        if (pid)
                return pid;
        if (peer.fd < 0)
                peer_accept(&peer);
        for (bool is_over = false; !is_over;) {
                char *heard = peer_heard_all(&peer);

                for (char *line = strtok(heard, "\n"); line; line = strtok(NULL, "\n")) {
                        unsigned int id;

                        is_over |= strstr(line, last) != NULL;
                        if (!is_over && sscanf(line, "[0,%u,", &id) == 1)
                                peer_answer(&peer, id, "null", "{}");
                }
                free(heard);
        }
        _exit(0);
}

START_TEST(a_call_that_waits_ends_with_the_connection_and_the_next_waits_for_another) {
        pid_t pid;

        begin();
        pid = fork_peer("\"last\"");
        peer_close(&peer);
        ck_assert_int_eq(troupe_request(t, "ping", NULL, NULL), 0);
        ck_assert_int_eq(troupe_request(t, "last", NULL, NULL), -EREMOTEIO);
        ck_assert_str_eq(troupe_error(t)->code, "disconnected");
        ck_assert_str_eq(ran(), "maybe");
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        pid = fork_peer("\"end\"");
        ck_assert_int_eq(troupe_request(t, "ping", NULL, NULL), 0);
        ck_assert_str_eq(told, "");
        ck_assert_int_eq(troupe_timeout_ms(t), 0);
        ck_assert_int_ge(troupe_process(t, 0), 0);
        ck_assert_str_eq(told, "LOST; RESTORED; ");
        ck_assert_int_eq(troupe_request(t, "end", NULL, NULL), -EREMOTEIO);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        end();
}
END_TEST

START_TEST(what_was_asked_through_the_old_connection_cannot_be_answered) {
        struct troupe_asked *old;

        begin();
        peer_answer(&peer, 1, "null", "null");
        ck_assert_int_eq(troupe_listen(t, on_message, NULL, NULL), 0);
        peer_request(&peer, 1, "message", "[\"work\", 1]");
        must_tell("work [1]; ");
        old = asked;
        /* and what nobody has seen yet, of which only what was told comes */
        peer_request(&peer, 2, "message", "[\"work\", 2]");
        peer_notify(&peer, "message", "[\"tick\", 3]");
        peer_close(&peer);
        ck_assert_int_eq(troupe_request(t, "ping", NULL, NULL), -EREMOTEIO);
        must_tell("tick [3]; LOST; ");
        come_back();
        must_hear("[0,3," HELLO "[0,4,\"listen\",[]]\n");
        peer_answer(&peer, 3, "null", "{}");
        peer_answer(&peer, 4, "null", "{}");
        peer_request(&peer, 1, "message", "[\"work\", 4]");
        must_tell("work [4]; RESTORED; ");
        ck_assert_int_eq(troupe_reply(old, "i", 1), -ENOTCONN);
        ck_assert_int_eq(troupe_reply(asked, "i", 4), 0);
        must_hear("[1,1,null,4]\n");
        end();
}
END_TEST

static void free_when_lost(struct troupe *troupe, enum troupe_link link, const char *method, const char *name,
                           void *userdata) {
        on_link(troupe, link, method, name, told);
        troupe_free(troupe);
}

START_TEST(the_connection_may_be_freed_when_it_is_lost) {
        begin();
        ck_assert_int_eq(troupe_on_link(t, free_when_lost, NULL), 0);
        ask(a);
        peer_close(&peer);
        ck_assert_int_eq(troupe_process(t, POLLIN), -ENOTCONN);
        ck_assert_str_eq(told, "a disconnected no; LOST; ");
        peer_deinit(&peer);
}
END_TEST

START_TEST(a_child_restores_nothing) {
        char handle[TROUPE_HANDLE_SIZE];
        int status;
        pid_t pid;

        begin();
        break_it();
        pid = fork();
        if (!pid) {
                int r = troupe_process(t, 0) == -ECHILD && troupe_timeout_ms(t) == -ECHILD &&
                        troupe_on_link(t, NULL, NULL) == -ECHILD && troupe_own_handle(t, handle) == -ECHILD;

                troupe_free(t);
                _exit(r ? 0 : 1);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        come_back();
        must_hear("[0,1," HELLO);
        end();
}
END_TEST

START_TEST(somebody_must_listen_the_first_time) {
        struct troupe *nobody = NULL;

        peer_init(&peer, 1);
        peer_unlisten(&peer);
        ck_assert_int_eq(troupe_connect(&nobody, peer.path, TROUPE_RECONNECT), -ENOENT);
        ck_assert_int_eq(troupe_connect(&nobody, peer.path, TROUPE_RECONNECT | TROUPE_NONBLOCK), -ENOENT);
        ck_assert_int_eq(troupe_connect(&nobody, peer.path, 4), -EINVAL);
        ck_assert_ptr_null(nobody);
        peer_deinit(&peer);
}
END_TEST

START_TEST(a_first_connection_that_was_on_its_way_is_not_lost) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fds[64], count = 0, fd;

        told[0] = '\0';
        peer_init(&peer, 0);
        strcpy(address.sun_path, peer.path);
        for (;;) {
                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
                ck_assert_int_lt(count, 64);
                fds[count++] = fd;
                if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
                        break;
        }
        ck_assert_int_eq(troupe_connect(&t, peer.path, TROUPE_NONBLOCK | TROUPE_RECONNECT), 0);
        ck_assert_int_eq(troupe_on_link(t, on_link, told), 0);
        ask(a);
        ck_assert_int_eq(troupe_process(t, 0), 0);
        ck_assert_int_eq(troupe_fd(t), -EAGAIN);
        peer_unlisten(&peer);
        ck_assert_int_eq(troupe_process(t, 0), 0);
        ck_assert_int_eq(troupe_fd(t), -EAGAIN);
        while (count)
                close(fds[--count]);
        peer_listen(&peer, 8);
        come_back();
        must_hear("[0,0," HELLO "[0,1,\"a\",[]]\n");
        peer_answer(&peer, 0, "null", "{}");
        peer_answer(&peer, 1, "null", "1");
        must_tell("a 1; ");
        end();
}
END_TEST

suite_main("client_restore", a_request_says_what_is_known_of_it_and_is_never_sent_again,
           a_frame_that_was_cut_in_two_was_never_sent, without_the_flag_nothing_is_restored,
           what_was_agreed_on_is_restored, what_is_refused_then_is_told_and_not_asked_for_again,
           what_is_agreed_on_while_there_is_no_connection_is_kept_too, an_end_that_the_break_left_unanswered_is_an_end,
           nobody_there_is_tried_less_and_less_often, freeing_says_what_was_never_sent,
           a_program_hears_of_it_once_each_time, a_daemon_that_has_no_room_is_tried_again,
           a_daemon_that_speaks_another_protocol_is_not,
           a_call_that_waits_ends_with_the_connection_and_the_next_waits_for_another,
           what_was_asked_through_the_old_connection_cannot_be_answered, the_connection_may_be_freed_when_it_is_lost,
           a_child_restores_nothing, somebody_must_listen_the_first_time,
           a_first_connection_that_was_on_its_way_is_not_lost);
