/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/frames.h"
#include "bench/socket.h"

/*
 * tasks SOCKET CALLERS COUNT task COMPONENT OPERATION
 * tasks SOCKET CALLERS COUNT beanstalkd
 * tasks SOCKET CALLERS COUNT redis
 *
 * CALLERS connections, each with one request outstanding, have a task, a job, an element of a list accepted, COUNT times or a few more in
 * all, and what is printed is how many were per second. What is kept is the same text everywhere.
 */

#define KEPT "sixty-four bytes that say what is to be done, and to whom, later"
#define LINE_BYTES 64

struct caller {
        struct bench_answers answers; /* of the daemon */
        char line[LINE_BYTES];        /* of the others: what has come of an answer */
        size_t len;
};

struct crowd {
        struct caller *callers;
        struct pollfd *waits;
        size_t size;
        struct tr_writer request; /* what each of them sends, again and again */
        const char *accepted;     /* what an answer begins with; NULL: they are frames */
};

static void write_task(struct crowd *crowd, const char *component, const char *operation) {
        struct tr_writer *writer = &crowd->request;

        tr_write_array(writer, 4);
        tr_write_int(writer, TR_FRAME_REQUEST);
        tr_write_uint(writer, 1);
        tr_write_text(writer, "task");
        tr_write_array(writer, 3);
        tr_write_text(writer, component);
        tr_write_text(writer, operation);
        tr_write_text(writer, KEPT);
}

static void write_text(struct crowd *crowd, const char *request, const char *accepted) {
        tr_write_raw(&crowd->request, request, strlen(request));
        crowd->accepted = accepted;
}

static void crowd_init(struct crowd *crowd, int argc, char **argv) {
        const char *what = argv[4];

        *crowd = (struct crowd){ .size = bench_count(argv[2]) };
        if (strcmp(what, "task") == 0 && argc == 7)
                write_task(crowd, argv[5], argv[6]);
        else if (strcmp(what, "beanstalkd") == 0 && argc == 5)
                write_text(crowd, "put 0 0 60 64\r\n" KEPT "\r\n", "INSERTED ");
        else if (strcmp(what, "redis") == 0 && argc == 5)
                write_text(crowd, "*3\r\n$5\r\nRPUSH\r\n$5\r\nbench\r\n$64\r\n" KEPT "\r\n", ":");
        else
                bench_die("%s: task COMPONENT OPERATION, beanstalkd, or redis", what);
        crowd->callers = calloc(crowd->size, sizeof(*crowd->callers));
        crowd->waits = calloc(crowd->size, sizeof(*crowd->waits));
        if (!crowd->callers || !crowd->waits || tr_writer_error(&crowd->request))
                bench_die("no memory for %zu callers", crowd->size);
        for (size_t i = 0; i < crowd->size; i++) {
                bench_answers_init(&crowd->callers[i].answers, bench_connect(argv[1]));
                crowd->waits[i] = (struct pollfd){ .fd = crowd->callers[i].answers.fd, .events = POLLIN };
        }
}

static void crowd_deinit(struct crowd *crowd) {
        for (size_t i = 0; i < crowd->size; i++) {
                close(crowd->callers[i].answers.fd);
                bench_answers_deinit(&crowd->callers[i].answers);
        }
        tr_writer_deinit(&crowd->request);
        free(crowd->callers);
        free(crowd->waits);
}

/* One read of what answers in lines; whether the line is whole. */
static bool line_is_whole(struct caller *caller, const char *accepted) {
        size_t wanted = strlen(accepted);

        caller->len += bench_read(caller->answers.fd, caller->line + caller->len, LINE_BYTES - caller->len);
        if (memcmp(caller->line, accepted, caller->len < wanted ? caller->len : wanted) != 0 || caller->len == LINE_BYTES)
                bench_die("it was answered %.*s", (int)caller->len, caller->line);
        if (caller->line[caller->len - 1] != '\n')
                return false;
        caller->len = 0;
        return true;
}

static bool is_accepted(const struct crowd *crowd, struct caller *caller) {
        return crowd->accepted ? line_is_whole(caller, crowd->accepted) : bench_answers_take(&caller->answers, NULL) > 0;
}

static void send_one(const struct crowd *crowd, const struct caller *caller) {
        bench_write(caller->answers.fd, crowd->request.data, crowd->request.len);
}

/* Answers how many were accepted. */
static uint64_t run(struct crowd *crowd, uint64_t count) {
        uint64_t accepted = 0, sent = crowd->size;

        for (size_t i = 0; i < crowd->size; i++)
                send_one(crowd, &crowd->callers[i]);
        while (accepted < sent) {
                if (poll(crowd->waits, crowd->size, -1) < 0)
                        bench_die("poll: %s", strerror(errno));
                for (size_t i = 0; i < crowd->size; i++) {
                        if (!crowd->waits[i].revents || !is_accepted(crowd, &crowd->callers[i]))
                                continue;
                        accepted++;
                        if (sent >= count)
                                continue;
                        send_one(crowd, &crowd->callers[i]);
                        sent++;
                }
        }
        return accepted;
}

int main(int argc, char **argv) {
        struct crowd crowd;
        uint64_t accepted, began_ns, took_ns;

        if (argc < 5)
                bench_die("tasks SOCKET CALLERS COUNT task COMPONENT OPERATION | beanstalkd | redis");
        crowd_init(&crowd, argc, argv);
        began_ns = bench_now_ns();
        accepted = run(&crowd, bench_count(argv[3]));
        took_ns = bench_now_ns() - began_ns;
        printf("{\"per_second\": %.0f, \"accepted\": %llu}\n", (double)accepted * 1e9 / (double)took_ns,
               (unsigned long long)accepted);
        crowd_deinit(&crowd);
        return 0;
}
