/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait: what goes out for each, and what comes of each kind of answer. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/troupe.h"
#include "tests/unit/peer.h"
#include "tests/unit/suite.h"

#define HANDLE "actor:00112233445566778899aabbccddeeff"

static void heard(struct peer *peer, const char *expected) {
        char *text = peer_heard(peer);

        ck_assert_str_eq(text, expected);
        free(text);
}

static void value_is(const struct troupe_value *value, const char *expected) {
        char *text;

        ck_assert_int_eq(troupe_value_json(value, &text, NULL), 0);
        ck_assert_str_eq(text, expected);
        free(text);
}

START_TEST(each_method_goes_out_as_the_protocol_has_it) {
        const struct troupe_spawn_options spawn = { .size = sizeof(spawn),
                                                    .name = "left",
                                                    .publish = "c.left",
                                                    .heap_bytes = 1 << 20,
                                                    .mailbox = 10,
                                                    .mailbox_bytes = 4096,
                                                    .async = 3,
                                                    .flags = TROUPE_SPAWN_DETACH | TROUPE_SPAWN_IF_ABSENT };
        const struct troupe_ask_options ask = { .size = sizeof(ask), .timeout_ms = 500, .trace = "00-1-2-01" };
        const struct troupe_stop_options stop = { .size = sizeof(stop), .within_ms = 20, .flags = TROUPE_STOP_KILL };
        const struct troupe_done_options done = { .size = sizeof(done), .timeout_ms = 7 };
        const struct troupe_hello_options hello = { .size = sizeof(hello), .client = "test", .timeout_ms = 5000 };
        const struct troupe_call_options call = {
                .size = sizeof(call), .timeout_ms = 500, .instance = "left", .id = "e1", .trace = "00-1-2-01"
        };
        const struct troupe_task_options task = { .size = sizeof(task), .delay_ms = 10, .at_ms = 20, .expires_ms = 30,
                                                  .key = "k",           .id = "e1",     .trace = "00-1-2-01" };
        char handle[TROUPE_HANDLE_SIZE] = "";
        struct troupe_value answer;
        struct peer peer;
        struct troupe *t;

        peer_init(&peer, 1);
        t = peer_connect(&peer, 0, "{}");
        peer_answer(&peer, 1, "null", "{}");
        ck_assert_int_eq(troupe_hello(t, &hello, NULL), 0);
        heard(&peer, "[0,1,\"hello\",[{\"client\":\"test\",\"errors\":\"map\",\"values\":\"typed\",\"protocol\":1,"
                     "\"timeout\":5000}]]\n");
        peer_answer(&peer, 2, "null", "{\"$handle\":\"" HANDLE "\"}");
        ck_assert_int_eq(troupe_spawn(t, "counter:Counter", &spawn, handle, "is", 1, "x"), 0);
        ck_assert_str_eq(handle, HANDLE);
        heard(&peer,
              "[0,2,\"spawn\",[\"counter:Counter\",[1,\"x\"],{\"name\":\"left\",\"publish\":\"c.left\",\"detach\":true,"
              "\"if_absent\":true,\"heap\":1048576,\"mailbox\":10,\"mailbox_bytes\":4096,\"async\":3}]]\n");
        peer_answer(&peer, 3, "null", "null");
        ck_assert_int_eq(troupe_send(t, HANDLE, "bump", "i", 2), 0);
        heard(&peer, "[0,3,\"send\",[{\"$handle\":\"" HANDLE "\"},\"bump\",[2]]]\n");
        peer_answer(&peer, 4, "null", "[1,4]");
        ck_assert_int_eq(troupe_ask(t, "counter", "totals", &ask, &answer, NULL), 0);
        value_is(&answer, "[1,4]");
        heard(&peer, "[0,4,\"ask\",[\"counter\",\"totals\",[],{\"trace\":\"00-1-2-01\",\"timeout\":500}]]\n");
        peer_answer(&peer, 5, "null", "{\"$handle\":\"" HANDLE "\"}");
        ck_assert_int_eq(troupe_find(t, "counter", handle), 0);
        ck_assert_str_eq(handle, HANDLE);
        peer_answer(&peer, 6, "null", "null");
        ck_assert_int_eq(troupe_find(t, "nobody", handle), -ENOENT);
        ck_assert_ptr_null(troupe_error(t));
        heard(&peer, "[0,5,\"find\",[\"counter\"]]\n[0,6,\"find\",[\"nobody\"]]\n");
        peer_answer(&peer, 7, "null", "null");
        ck_assert_int_eq(troupe_done(t, "counter", &done), 0);
        peer_answer(&peer, 8, "null", "null");
        ck_assert_int_eq(troupe_stop(t, "counter", &stop), 0);
        heard(&peer, "[0,7,\"done\",[\"counter\",{\"timeout\":7}]]\n[0,8,\"stop\",[\"counter\",{\"kill\":true,"
                     "\"within\":20}]]\n");
        peer_answer(&peer, 9, "null", "null");
        ck_assert_int_eq(troupe_publish(t, "n", HANDLE), 0);
        peer_answer(&peer, 10, "null", "null");
        ck_assert_int_eq(troupe_unpublish(t, "n"), 0);
        peer_answer(&peer, 11, "null", "null");
        ck_assert_int_eq(troupe_detach(t, "counter"), 0);
        heard(&peer, "[0,9,\"publish\",[\"n\",{\"$handle\":\"" HANDLE
                     "\"}]]\n[0,10,\"unpublish\",[\"n\"]]\n[0,11,\"detach\",[\"counter\"]]\n");
        peer_answer(&peer, 12, "null", "[]");
        ck_assert_int_eq(troupe_request(t, "list", &answer, "{ss}", "kind", "actor"), 0);
        heard(&peer, "[0,12,\"list\",[{\"kind\":\"actor\"}]]\n");
        peer_answer(&peer, 13, "null", "{\"id\":7}");
        ck_assert_int_eq(troupe_call(t, "media.streams", "create", &call, &answer, "{ss}", "title", "x"), 0);
        value_is(&answer, "{\"id\":7}");
        heard(&peer, "[0,13,\"call\",[\"media.streams\",\"create\",{\"title\":\"x\"},{\"instance\":\"left\",\"id\":\"e1\","
                     "\"trace\":\"00-1-2-01\",\"timeout\":500}]]\n");
        peer_answer(&peer, 14, "null", "\"t1\"");
        ck_assert_int_eq(troupe_task(t, "media.streams", "finish", &task, &answer, NULL), 0);
        value_is(&answer, "\"t1\"");
        heard(&peer, "[0,14,\"task\",[\"media.streams\",\"finish\",null,{\"key\":\"k\",\"id\":\"e1\","
                     "\"trace\":\"00-1-2-01\",\"delay\":10,\"at\":20,\"expires\":30}]]\n");
        ck_assert_int_eq(troupe_call(t, "media.streams", "create", NULL, NULL, "ii", 1, 2), -EINVAL);
        ck_assert_int_eq(troupe_call(t, "media.streams", NULL, NULL, NULL, NULL), -EINVAL);
        ck_assert_int_eq(troupe_task(t, NULL, "finish", NULL, NULL, NULL), -EINVAL);
        ck_assert_int_eq(troupe_call_async(t, "c", "o", NULL, NULL, NULL, NULL, "n"), 0);
        ck_assert_int_eq(troupe_task_async(t, "c", "o", NULL, NULL, NULL, NULL, "[i]", 1), 0);
        ck_assert_int_eq(troupe_process(t, 0), 0);
        heard(&peer, "[0,18,\"call\",[\"c\",\"o\",null]]\n[0,19,\"task\",[\"c\",\"o\",[1]]]\n");
        troupe_free(t);
        peer_deinit(&peer);
}
END_TEST

START_TEST(the_library_says_hello_first) {
        struct peer peer;
        struct troupe *t;
        char piece[100];

        peer_init(&peer, 1);
        t = peer_connect(&peer, 0, NULL);
        ck_assert_int_eq(troupe_process(t, 0), 0);
        ck_assert_int_gt(read(peer.fd, piece, sizeof(piece)), 40);
        ck_assert_mem_eq(piece,
                         "\x94\x00\x00\xa5hello\x91\x83\xa8protocol\x01\xa6"
                         "errors\xa3map\xa6values\xa5typed",
                         45);
        ck_assert_str_eq(troupe_path(t), peer.path);
        troupe_free(t);
        peer_deinit(&peer);
}
END_TEST

static void fails_with(struct troupe *t, const char *code, const char *message, enum troupe_ran ran) {
        const struct troupe_error *error;

        ck_assert_int_eq(troupe_send(t, "x", "y", NULL), -EREMOTEIO);
        error = troupe_error(t);
        ck_assert_ptr_nonnull(error);
        ck_assert_str_eq(error->code, code);
        ck_assert_str_eq(error->message, message);
        ck_assert_int_eq(error->ran, ran);
}

START_TEST(errors_of_every_form) {
        static const struct {
                const char *json, *code, *message;
                enum troupe_ran ran;
        } cases[] = {
                { "{\"code\":\"fault\",\"message\":\"it broke\",\"ran\":\"yes\",\"traceback\":\"t\"}", "fault",
                  "it broke", TROUPE_RAN_YES },
                { "{\"code\":\"mailbox-full\",\"message\":\"full\"}", "mailbox-full", "full", TROUPE_RAN_NO },
                { "{\"code\":\"of-tomorrow\",\"message\":\"new\",\"ran\":\"no\"}", "of-tomorrow", "new",
                  TROUPE_RAN_NO },
                { "{\"code\":\"of-tomorrow\",\"message\":\"new\"}", "of-tomorrow", "new", TROUPE_RAN_MAYBE },
                { "[1,\"not-found: no actor `x` (ran: no)\"]", "not-found", "no actor `x`", TROUPE_RAN_NO },
                { "\"timeout: the deadline passed (ran: maybe)\"", "timeout", "the deadline passed", TROUPE_RAN_MAYBE },
                { "\"timeout: (ran: no\"", "timeout", "(ran: no", TROUPE_RAN_MAYBE },
                { "\"what: is this\"", "internal", "what: is this", TROUPE_RAN_MAYBE },
                { "7", "internal", "", TROUPE_RAN_MAYBE },
                { "[]", "internal", "", TROUPE_RAN_MAYBE },
        };
        struct troupe_value traceback;
        struct peer peer;
        struct troupe *t;

        peer_init(&peer, 1);
        t = peer_connect(&peer, 0, "{}");
        ck_assert_ptr_null(troupe_error(t));
        for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                peer_answer(&peer, i + 1, cases[i].json, "null");
                fails_with(t, cases[i].code, cases[i].message, cases[i].ran);
                if (!i) {
                        ck_assert_int_eq(troupe_value_get(&troupe_error(t)->details, "traceback", &traceback), 0);
                        value_is(&traceback, "\"t\"");
                }
        }
        ck_assert_int_eq(troupe_set_limits(t, 0, 0), 0);
        ck_assert_ptr_null(troupe_error(t));
        troupe_free(t);
        peer_deinit(&peer);
}
END_TEST

START_TEST(an_unwilling_daemon_is_what_becomes_of_everything) {
        struct peer peer;
        struct troupe *t;

        peer_init(&peer, 1);
        t = peer_connect(&peer, 0, NULL);
        peer_answer(&peer, 0, "[0,\"limit: too many connections of this user (ran: no)\"]", "null");
        fails_with(t, "limit", "too many connections of this user", TROUPE_RAN_NO);
        ck_assert_int_eq(troupe_send(t, "x", "y", NULL), -ENOTCONN);
        ck_assert_ptr_null(troupe_error(t));
        troupe_free(t);
        peer_deinit(&peer);
}
END_TEST

START_TEST(a_connection_that_breaks_says_so) {
        struct peer peer;
        struct troupe *t;

        peer_init(&peer, 1);
        t = peer_connect(&peer, 0, "{}");
        peer_close(&peer);
        fails_with(t, "disconnected", "the connection to the daemon broke", TROUPE_RAN_MAYBE);
        ck_assert_int_eq(troupe_send(t, "x", "y", NULL), -ENOTCONN);
        ck_assert_int_eq(troupe_fd(t), -ENOTCONN);
        ck_assert_int_eq(troupe_events(t), 0);
        ck_assert_int_eq(troupe_timeout_ms(t), -1);
        troupe_free(t);
        peer_deinit(&peer);
}
END_TEST

START_TEST(what_came_before_the_end_is_still_read) {
        struct troupe_value answer;
        struct peer peer;
        struct troupe *t;

        peer_init(&peer, 1);
        t = peer_connect(&peer, 0, "{}");
        peer_answer(&peer, 1, "null", "\"pong\"");
        peer_close(&peer);
        ck_assert_int_eq(troupe_request(t, "ping", &answer, NULL), 0);
        value_is(&answer, "\"pong\"");
        troupe_free(t);
        peer_deinit(&peer);
}
END_TEST

START_TEST(nothing_is_sent_of_what_makes_no_sense) {
        struct troupe_spawn_options spawn = { .size = sizeof(spawn), .flags = 1u << 31 };
        struct troupe_done_options done = { 0 };
        struct {
                struct troupe_stop_options known;
                int later;
        } newer = { { .size = sizeof(newer) }, 0 };
        struct peer peer;
        struct troupe *t;

        peer_init(&peer, 1);
        t = peer_connect(&peer, 0, "{}");
        ck_assert_int_eq(troupe_send(t, NULL, "y", NULL), -EINVAL);
        ck_assert_int_eq(troupe_send(t, "x", NULL, NULL), -EINVAL);
        ck_assert_int_eq(troupe_send(t, "x", "y", "j", "{"), -EINVAL);
        ck_assert_int_eq(troupe_send(t, "x", "y", "j", "18446744073709551616"), -ERANGE);
        ck_assert_int_eq(troupe_spawn(t, "a", &spawn, NULL, NULL), -EINVAL);
        spawn = (struct troupe_spawn_options){ .size = sizeof(spawn), .heap_bytes = UINT64_MAX };
        ck_assert_int_eq(troupe_spawn(t, "a", &spawn, NULL, NULL), -EINVAL);
        ck_assert_int_eq(troupe_done(t, "x", &done), -EINVAL);
        newer.later = 1;
        ck_assert_int_eq(troupe_stop(t, "x", &newer.known), -E2BIG);
        ck_assert_int_eq(troupe_request(t, NULL, NULL, NULL), -EINVAL);
        ck_assert_int_eq(troupe_publish(t, NULL, "x"), -EINVAL);
        heard(&peer, "");
        newer.later = 0;
        peer_answer(&peer, 10, "null", "null");
        ck_assert_int_eq(troupe_stop(t, "x", &newer.known), 0);
        heard(&peer, "[0,10,\"stop\",[\"x\",{}]]\n");
        troupe_free(t);
        peer_deinit(&peer);
}
END_TEST

START_TEST(an_answer_in_pieces_and_a_large_one) {
        char *text = malloc(3u << 20);
        struct troupe_value frame, answer;
        const char *data;
        struct peer peer;
        struct troupe *t;
        size_t length;
        pid_t pid;

        memset(text, 'x', 3u << 20);
        peer_init(&peer, 1);
        t = peer_connect(&peer, 0, "{}");
        ck_assert_int_eq(troupe_pack(&frame, "[iinS]", 1, 1, text, (size_t)3 << 20), 0);
        pid = fork();
        if (!pid) {
                peer_write(&peer, frame.data, 3);
                peer_write(&peer, (const char *)frame.data + 3, frame.size - 3);
                _exit(0);
        }
        ck_assert_int_eq(troupe_ask(t, "x", "y", NULL, &answer, NULL), 0);
        ck_assert_int_eq(troupe_value_string(&answer, &data, &length), 0);
        ck_assert_uint_eq(length, 3u << 20);
        ck_assert_mem_eq(data, text, length);
        waitpid(pid, NULL, 0);
        peer_answer(&peer, 2, "null", "1");
        ck_assert_int_eq(troupe_ask(t, "x", "y", NULL, &answer, NULL), 0);
        value_is(&answer, "1");
        troupe_value_free(&frame);
        free(text);
        troupe_free(t);
        peer_deinit(&peer);
}
END_TEST

START_TEST(an_answer_that_cannot_be_taken_ends_that_request_only) {
        struct peer peer;
        struct troupe *t;

        peer_init(&peer, 1);
        t = peer_connect(&peer, 0, "{}");
        /* an ext of a type that nobody knows */
        peer_write(&peer, "\x94\x01\x01\xc0\xd4\x55\x00", 7);
        fails_with(t, "not-sendable", "the answer holds a value that cannot cross", TROUPE_RAN_YES);
        /* 4 GiB, by its head */
        peer_write(&peer, "\x94\x01\x02\xc0\xdb\xff\xff\xff\xff", 9);
        fails_with(t, "too-large", "the answer is larger than a frame may be", TROUPE_RAN_YES);
        ck_assert_int_ge(troupe_fd(t), 0);
        troupe_free(t);
        peer_deinit(&peer);
}
END_TEST

START_TEST(a_child_cannot_use_its_parents_connection) {
        char handle[TROUPE_HANDLE_SIZE];
        struct peer peer;
        struct troupe *t;
        int status;
        pid_t pid;

        peer_init(&peer, 1);
        t = peer_connect(&peer, 0, "{}");
        pid = fork();
        if (!pid) {
                bool is_right = troupe_send(t, "x", "y", NULL) == -ECHILD && troupe_find(t, "x", handle) == -ECHILD &&
                                troupe_notify(t, "send", NULL) == -ECHILD && troupe_fd(t) == -ECHILD &&
                                troupe_events(t) == -ECHILD && troupe_timeout_ms(t) == -ECHILD &&
                                troupe_process(t, -1) == -ECHILD && !troupe_error(t) &&
                                troupe_set_limits(t, 1, 1) == -ECHILD;
                troupe_free(t);
                _exit(is_right ? 0 : 1);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        peer_answer(&peer, 1, "null", "null");
        ck_assert_int_eq(troupe_send(t, "x", "y", NULL), 0);
        heard(&peer, "[0,1,\"send\",[\"x\",\"y\",[]]]\n");
        troupe_free(t);
        peer_deinit(&peer);
}
END_TEST

START_TEST(connecting_to_nobody) {
        char directory[] = "/tmp/troupe-test-XXXXXX", path[64], long_path[200];
        struct troupe *t = NULL;

        ck_assert_ptr_nonnull(mkdtemp(directory));
        snprintf(path, sizeof(path), "%s/sock", directory);
        ck_assert_int_eq(troupe_connect(&t, path, 0), -ENOENT);
        memset(long_path, 'a', sizeof(long_path));
        long_path[sizeof(long_path) - 1] = '\0';
        ck_assert_int_eq(troupe_connect(&t, long_path, 0), -ENAMETOOLONG);
        ck_assert_int_eq(troupe_connect(&t, path, 1u << 31), -EINVAL);
        ck_assert_int_eq(troupe_connect(NULL, path, 0), -EINVAL);
        setenv("TROUPE_SOCKET", path, 1);
        ck_assert_int_eq(troupe_connect(&t, NULL, 0), -ENOENT);
        setenv("TROUPE_SOCKET", long_path, 1);
        ck_assert_int_eq(troupe_connect(&t, NULL, 0), -ENAMETOOLONG);
        ck_assert_ptr_null(t);
        troupe_free(NULL);
        rmdir(directory);
}
END_TEST

START_TEST(the_environment_says_where) {
        struct troupe *t;
        struct peer peer;

        peer_init(&peer, 1);
        setenv("TROUPE_SOCKET", peer.path, 1);
        ck_assert_int_eq(troupe_connect(&t, NULL, 0), 0);
        ck_assert_str_eq(troupe_path(t), peer.path);
        peer_accept(&peer);
        troupe_free(t);
        peer_deinit(&peer);
}
END_TEST

suite_main("client_calls", each_method_goes_out_as_the_protocol_has_it, the_library_says_hello_first,
           errors_of_every_form, an_unwilling_daemon_is_what_becomes_of_everything, a_connection_that_breaks_says_so,
           what_came_before_the_end_is_still_read, nothing_is_sent_of_what_makes_no_sense,
           an_answer_in_pieces_and_a_large_one, an_answer_that_cannot_be_taken_ends_that_request_only,
           a_child_cannot_use_its_parents_connection, connecting_to_nobody, the_environment_says_where);
