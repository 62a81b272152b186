/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that outlives its daemon: test_outlives.py runs it with the socket's path, kills the daemon when this says
 * `ready`, says `dead`, and starts another one when this says LOST. It prints what is known of each request.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/troupe.h"

#define must(condition)                                                                               \
        do {                                                                                          \
                if (!(condition)) {                                                                   \
                        fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
                        exit(1);                                                                      \
                }                                                                                     \
        } while (0)

static void say(const char *text) {
        printf("%s\n", text);
        fflush(stdout);
}

static void on_answer(struct troupe *t, int result, const struct troupe_value *answer, void *userdata) {
        static const char *const ran[] = { "no", "maybe", "yes" };
        const struct troupe_error *error = troupe_error(t);
        char line[80];

        must(result == -EREMOTEIO && error);
        snprintf(line, sizeof(line), "%s: %s, ran: %s", (const char *)userdata, error->code, ran[error->ran]);
        say(line);
}

static void on_total(struct troupe *t, int result, const struct troupe_value *answer, void *userdata) {
        must(!result && !troupe_value_int(answer, userdata));
}

static void on_link(struct troupe *t, enum troupe_link link, const char *method, const char *name, void *userdata) {
        static const char *const words[] = { "LOST", "REFUSED", "RESTORED" };

        *(enum troupe_link *)userdata = link;
        say(words[link]);
}

static void go_on(struct troupe *t) {
        struct pollfd fd = { troupe_fd(t), troupe_events(t), 0 };

        must(poll(&fd, 1, troupe_timeout_ms(t)) >= 0);
        must(troupe_process(t, fd.revents) >= 0);
}

int main(int argc, char **argv) {
        static char begun[] = "begun", queued[] = "queued";
        char handle[TROUPE_HANDLE_SIZE], line[8];
        enum troupe_link link = TROUPE_LINK_RESTORED;
        int64_t total = -1;
        struct troupe *t;

        must(argc == 2);
        must(troupe_connect(&t, argv[1], TROUPE_RECONNECT) == 0);
        must(troupe_on_link(t, on_link, &link) == 0);
        must(troupe_spawn(t, "counter", NULL, handle, "i", 7) == 0);
        must(troupe_ask_async(t, handle, "wait", NULL, on_answer, begun, NULL, NULL) == 0);
        /* answered behind that one, which has begun then */
        must(troupe_ask(t, handle, "total", NULL, NULL, NULL) == 0);
        say("ready");
        must(fgets(line, sizeof(line), stdin) && !strcmp(line, "dead\n"));
        must(troupe_ask_async(t, handle, "total", NULL, on_answer, queued, NULL, NULL) == 0);
        while (link != TROUPE_LINK_LOST)
                go_on(t);

        /* waits for the next one */
        must(troupe_spawn(t, "counter", NULL, handle, "i", 8) == 0);
        must(troupe_ask_async(t, handle, "total", NULL, on_total, &total, NULL, NULL) == 0);
        while (total != 8 || link != TROUPE_LINK_RESTORED)
                go_on(t);
        troupe_free(t);
        return 0;
}
