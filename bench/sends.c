/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <unistd.h>

#include "bench/frames.h"
#include "bench/socket.h"

/*
 * sends SOCKET HANDLE COUNT: sends an actor of the counter example COUNT bumps
 * as notifications, on one connection, and prints how many were handled per
 * second: the clock stops when the counter has answered that it counted them
 * all, so that none was refused. Of a pool (bench/pools.lua), whose workers
 * count each for itself, it stops when the pool has been stopped and has ended,
 * and whoever runs this adds their counts up.
 *
 * Notifications are not answered, so something has to keep them from overrunning
 * the mailbox (65,536): behind each window of them goes an ask, and at most
 * WINDOWS windows are ahead of the last one answered.
 */

#define WINDOW 4096u
#define WINDOWS 8u

static void window_init(struct tr_writer *window, const struct tr_handle *target, uint64_t sends) {
        *window = TR_WRITER_INIT;
        for (uint64_t i = 0; i < sends; i++)
                bench_write_send(window, target, "bump");
}

/* The ask behind a window has an id of its own: a pool's workers answer in any order. */
static void send_window(int fd, const struct tr_writer *window, struct tr_writer *ask, uint32_t id, const struct tr_handle *target) {
        tr_writer_reset(ask);
        bench_write_ask(ask, id, target, "total");
        if (window->len)
                bench_write(fd, window->data, window->len);
        bench_write(fd, ask->data, ask->len);
}

/* Answers what the counter said at the end. */
static int64_t run(struct bench_answers *answers, const struct tr_handle *target, const struct tr_writer *window,
                   const struct tr_writer *rest, uint64_t count) {
        uint64_t total = count / WINDOW + 1, sent = 0, answered = 0;
        struct tr_writer ask = TR_WRITER_INIT;
        int64_t integer = -1;

        while (answered < total) {
                while (sent < total && sent - answered < WINDOWS) {
                        send_window(answers->fd, sent + 1 == total ? rest : window, &ask, (uint32_t)sent, target);
                        sent++;
                }
                answered += bench_answers_take(answers, &integer);
        }
        tr_writer_deinit(&ask);
        return integer;
}

/* It serves what is queued, and ends. */
static void stop(struct bench_answers *answers, const struct tr_handle *pool) {
        struct tr_writer requests = TR_WRITER_INIT;

        bench_write_request(&requests, 0, "stop", pool);
        bench_write_request(&requests, 1, "done", pool);
        bench_write(answers->fd, requests.data, requests.len);
        for (size_t answered = 0; answered < 2;)
                answered += bench_answers_take(answers, NULL);
        tr_writer_deinit(&requests);
}

int main(int argc, char **argv) {
        struct tr_writer window, rest;
        struct bench_answers answers;
        struct tr_handle target;
        uint64_t count, began_ns, took_ns;
        int64_t before, after;
        int fd;

        if (argc != 4)
                bench_die("sends SOCKET HANDLE COUNT");
        target = bench_handle(argv[2]);
        count = bench_count(argv[3]);
        fd = bench_connect(argv[1]);
        bench_answers_init(&answers, fd);
        window_init(&window, &target, WINDOW);
        window_init(&rest, &target, count % WINDOW);

        before = bench_answers_total(&answers, &target);
        began_ns = bench_now_ns();
        after = run(&answers, &target, &window, &rest, count);
        if (tr_handle_is_pool(&target))
                stop(&answers, &target);
        else if (after != before + (int64_t)count)
                bench_die("the counter did not count every send");
        took_ns = bench_now_ns() - began_ns;
        printf("{\"per_second\": %.0f}\n", (double)count * 1e9 / (double)took_ns);

        tr_writer_deinit(&window);
        tr_writer_deinit(&rest);
        bench_answers_deinit(&answers);
        close(fd);
        return 0;
}
