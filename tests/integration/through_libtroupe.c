/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with libtroupe as anybody would write one, against a real daemon: test_through_libtroupe.py runs it with
 * the socket's path. It says what does not hold, and exits with 1.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/troupe.h"

#define MANY 100000

#define must(condition)                                                                               \
        do {                                                                                          \
                if (!(condition)) {                                                                   \
                        fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
                        exit(1);                                                                      \
                }                                                                                     \
        } while (0)

static void must_fail(struct troupe *t, int r, const char *code, enum troupe_ran ran) {
        const struct troupe_error *error = troupe_error(t);

        must(r == -EREMOTEIO);
        must(error);
        if (strcmp(error->code, code) || error->ran != ran) {
                fprintf(stderr, "%s (ran %d) and not %s: %s\n", error->code, error->ran, code, error->message);
                exit(1);
        }
}

static int64_t ask_number(struct troupe *t, const char *target, const char *handler) {
        struct troupe_value answer;
        int64_t number;

        must(troupe_ask(t, target, handler, NULL, &answer, NULL) == 0);
        must(troupe_value_int(&answer, &number) == 0);
        return number;
}

static void one_after_the_other(struct troupe *t) {
        const struct troupe_hello_options hello = { .size = sizeof(hello), .client = "through_libtroupe" };
        const struct troupe_spawn_options spawn = { .size = sizeof(spawn), .publish = "lib.counter", .mailbox = 1000 };
        const struct troupe_ask_options soon = { .size = sizeof(soon), .timeout_ms = 20 };
        char handle[TROUPE_HANDLE_SIZE], found[TROUPE_HANDLE_SIZE];
        struct troupe_value answer, value;
        const char *text;
        int64_t number;
        size_t len;

        must(troupe_hello(t, &hello, &answer) == 0);
        must(troupe_value_get(&answer, "protocol", &value) == 0);
        must(troupe_value_int(&value, &number) == 0 && number == 1);

        must(troupe_spawn(t, "counter", &spawn, handle, "i", 40) == 0);
        must(troupe_find(t, "lib.counter", found) == 0 && !strcmp(handle, found));
        must(troupe_find(t, "lib.nobody", found) == -ENOENT);
        must(troupe_send(t, handle, "bump", "i", 1) == 0);
        must(troupe_send(t, "lib.counter", "bump", "*j", "[1]") == 0);
        must(ask_number(t, handle, "total") == 42);

        must(troupe_ask(t, handle, "echo", NULL, &answer, "{s:[ndS], s:h}", "a", 0.5, "x\0y", (size_t)3, "me",
                        handle) == 0);
        must(troupe_value_get(&answer, "me", &value) == 0);
        must(troupe_value_handle(&value, found) == 0 && !strcmp(handle, found));
        must(troupe_value_get(&answer, "a", &value) == 0 && troupe_value_at(&value, 2, &value) == 0);
        must(troupe_value_string(&value, &text, &len) == 0 && len == 3 && !memcmp(text, "x\0y", 3));

        must_fail(t, troupe_ask(t, handle, "nothing", NULL, NULL, NULL), "no-such-handler", TROUPE_RAN_NO);
        must_fail(t, troupe_spawn(t, "counter", &spawn, NULL, NULL), "taken", TROUPE_RAN_NO);
        must_fail(t, troupe_ask(t, handle, "nap", &soon, NULL, NULL), "timeout", TROUPE_RAN_MAYBE);
        must_fail(t, troupe_request(t, "dance", NULL, "s", "tango"), "unknown-method", TROUPE_RAN_NO);
        must(troupe_unpublish(t, "lib.counter") == 0);
        must(troupe_publish(t, "lib.again", handle) == 0);
        must(troupe_stop(t, "lib.again", NULL) == 0);
        must(troupe_done(t, handle, NULL) == 0);
        must_fail(t, troupe_send(t, handle, "bump", NULL), "not-running", TROUPE_RAN_NO);

        must(troupe_spawn(t, "counter", NULL, handle, NULL) == 0);
        must_fail(t, troupe_ask(t, handle, "fail", NULL, NULL, "s", "it broke"), "fault", TROUPE_RAN_YES);
        must(troupe_value_get(&troupe_error(t)->details, "traceback", &value) == 0);
        must_fail(t, troupe_done(t, handle, NULL), "fault", TROUPE_RAN_YES);
}

/* What the callbacks have seen. */
struct seen {
        int answered;
        int failed;
        int64_t last;
        int in_order;
        int has_room;
};

static void on_number(struct troupe *t, int result, const struct troupe_value *answer, void *userdata) {
        struct seen *seen = userdata;
        int64_t number = 0;

        seen->answered += !result;
        seen->failed += result == -EREMOTEIO && troupe_error(t);
        if (!result && !troupe_value_int(answer, &number)) {
                seen->in_order &= number == seen->last + 1;
                seen->last = number;
        }
}

static void on_room(struct troupe *t, void *userdata) {
        struct seen *seen = userdata;

        seen->has_room = 1;
}

static void go_on(struct troupe *t) {
        struct pollfd fd = { troupe_fd(t), troupe_events(t), 0 };

        must(poll(&fd, 1, troupe_timeout_ms(t)) >= 0);
        must(troupe_process(t, fd.revents) >= 0);
}

static void many_at_once(struct troupe *t, const char *handle) {
        struct seen seen = { .in_order = 1 };
        int r;

        must(troupe_set_limits(t, 1000, 0) == 0);
        must(troupe_on_room(t, on_room, &seen) == 0);
        for (int i = 0; i < MANY;) {
                r = troupe_ask_async(t, handle, "next", NULL, on_number, &seen, NULL, NULL);
                i += !r;
                must(!r || r == -ENOBUFS);
                if (!r)
                        continue;
                for (seen.has_room = 0; !seen.has_room;)
                        go_on(t);
        }
        while (seen.answered < MANY)
                go_on(t);
        must(seen.in_order && seen.last == MANY);
}

static void taken_back(struct troupe *t, const char *handle) {
        struct seen waiting = { 0 }, behind = { 0 };
        struct troupe_pending *pending;

        must(troupe_ask_async(t, handle, "wait", NULL, on_number, &waiting, &pending, NULL) == 0);
        must(ask_number(t, handle, "next") == MANY + 1);
        must(waiting.failed == 0);
        must(troupe_cancel(pending) == 0);
        must(troupe_ask_async(t, handle, "next", NULL, on_number, &behind, NULL, NULL) == 0);
        while (!waiting.failed || !behind.answered)
                go_on(t);
}

/* What an actor has told and asked of the connection. */
struct listener {
        int ticks;
        struct troupe_asked *later;
};

static void on_message(struct troupe *t, const char *handler, const struct troupe_value *args,
                       struct troupe_asked *asked, void *userdata) {
        struct listener *listener = userdata;
        struct troupe_value first, second;
        int64_t a, b;

        if (!strcmp(handler, "later")) {
                must(asked && !listener->later);
                listener->later = asked;
                return;
        }
        must(troupe_value_at(args, 0, &first) == 0 && troupe_value_int(&first, &a) == 0);
        must(troupe_value_at(args, 1, &second) == 0);
        if (!strcmp(handler, "tick")) {
                must(!asked && a == 1 && troupe_value_get(&second, "two", &second) == 0);
                listener->ticks++;
        } else {
                must(!strcmp(handler, "add") && asked && troupe_value_int(&second, &b) == 0);
                must(troupe_reply(asked, "l", a + b) == 0);
        }
}

static void listening(struct troupe *t) {
        struct seen answered = { .in_order = 1 }, refused = { 0 };
        char handle[TROUPE_HANDLE_SIZE], own[TROUPE_HANDLE_SIZE], again[TROUPE_HANDLE_SIZE];
        struct listener listener = { 0 };

        must(troupe_spawn(t, "counter", NULL, handle, NULL) == 0);
        must(troupe_own_handle(t, own) == -ENOENT);
        must(troupe_listen(t, on_message, &listener, own) == 0);
        must(troupe_own_handle(t, again) == 0 && !strcmp(own, again));
        must(troupe_ask_async(t, handle, "pass", NULL, on_number, &answered, NULL, "h", own) == 0);
        while (!listener.later)
                go_on(t);
        must(listener.ticks == 1 && !answered.answered);
        must(troupe_reply(listener.later, "i", 1) == 0);
        while (!answered.answered)
                go_on(t);
        must(answered.last == 42);

        listener.later = NULL;
        must(troupe_ask_async(t, handle, "pass", NULL, on_number, &refused, NULL, "h", own) == 0);
        while (!listener.later)
                go_on(t);
        must(troupe_refuse(listener.later, "I would rather not", NULL) == 0);
        while (!refused.failed)
                go_on(t);
        /* the connection asks itself */
        listener.later = NULL;
        must(troupe_ask_async(t, own, "add", NULL, on_number, &answered, NULL, "ii", 1, 2) == 0);
        while (answered.last != 3)
                go_on(t);
}

/* All events that were seen, of whichever actors: several may come at once. */
#define HAPPENED_MAX 64
struct happened {
        struct {
                char event[16];
                char handle[TROUPE_HANDLE_SIZE];
        } list[HAPPENED_MAX];
        size_t count;
};

static void on_event(struct troupe *t, const char *topic, const struct troupe_value *event, void *userdata) {
        struct happened *happened = userdata;
        struct troupe_value value;
        const char *text;
        size_t length;

        must(!strcmp(topic, "lifecycle"));
        must(troupe_value_get(event, "event", &value) == 0 && troupe_value_string(&value, &text, &length) == 0);
        must(happened->count < HAPPENED_MAX && length < sizeof(happened->list[0].event));
        snprintf(happened->list[happened->count].event, sizeof(happened->list[0].event), "%.*s", (int)length, text);
        must(troupe_value_get(event, "handle", &value) == 0 && troupe_value_string(&value, &text, &length) == 0);
        snprintf(happened->list[happened->count].handle, sizeof(happened->list[0].handle), "%.*s", (int)length, text);
        happened->count++;
}

/* Whether an event of an actor was seen; NULL: any. An event has the first eight digits of a handle. */
static int has_happened(const struct happened *happened, const char *event, const char *handle) {
        for (size_t i = 0; i < happened->count; i++)
                if (strlen(happened->list[i].handle) == 8 &&
                    !strncmp(happened->list[i].handle, handle + strlen("actor:"), 8) &&
                    (!event || !strcmp(happened->list[i].event, event)))
                        return 1;
        return 0;
}

static void wait_until(struct troupe *t, const struct happened *happened, const char *event, const char *handle) {
        while (!has_happened(happened, event, handle))
                go_on(t);
}

static void watching(struct troupe *t) {
        struct happened happened = { .count = 0 };
        char handle[TROUPE_HANDLE_SIZE];

        must(troupe_subscribe(t, "lifecycle", NULL, on_event, &happened) == 0);
        must(troupe_spawn(t, "counter", NULL, handle, NULL) == 0);
        wait_until(t, &happened, "started", handle);
        must(troupe_stop(t, handle, NULL) == 0);
        wait_until(t, &happened, "stopped", handle);
        must(troupe_unsubscribe(t, "lifecycle") == 0);
        must(troupe_spawn(t, "counter", NULL, handle, NULL) == 0);
        must(troupe_stop(t, handle, NULL) == 0);
        must(troupe_done(t, handle, NULL) == 0);
        must(troupe_process(t, -1) >= 0);
        must(!has_happened(&happened, NULL, handle));
        must_fail(t, troupe_subscribe(t, "weather", NULL, on_event, &happened), "bad-request", TROUPE_RAN_NO);
}

static void in_a_child(struct troupe *t) {
        int status;
        pid_t pid = fork();

        if (!pid) {
                int r = troupe_request(t, "ping", NULL, NULL);

                troupe_free(t);
                _exit(r == -ECHILD ? 0 : 1);
        }
        must(waitpid(pid, &status, 0) == pid && status == 0);
        must(troupe_request(t, "ping", NULL, NULL) == 0);
}

int main(int argc, char **argv) {
        char handle[TROUPE_HANDLE_SIZE];
        struct seen left = { 0 };
        struct troupe *t, *other;

        must(argc == 2);
        must(troupe_connect(&t, argv[1], 0) == 0);
        one_after_the_other(t);

        must(troupe_connect(&other, argv[1], TROUPE_NONBLOCK) == 0);
        must(troupe_spawn(other, "counter", NULL, handle, NULL) == 0);
        many_at_once(other, handle);
        taken_back(other, handle);
        in_a_child(other);
        listening(other);
        watching(other);

        /* The connection's end is the end of what it started, which waits too long and is killed, and of what it
         * waits for. */
        must(troupe_ask_async(other, handle, "wait", NULL, on_number, &left, NULL, NULL) == 0);
        troupe_free(other);
        must(left.failed == 1);
        must(troupe_done(t, handle, NULL) == -EREMOTEIO && !strcmp(troupe_error(t)->code, "killed"));
        troupe_free(t);
        return 0;
}
