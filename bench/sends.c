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
 * all, so that none was refused.
 *
 * Notifications are not answered, so something has to keep them from overrunning
 * the mailbox (65,536): behind each window of them goes an ask, and at most
 * WINDOWS windows are ahead of the last one answered.
 */

#define WINDOW 4096u
#define WINDOWS 8u

static void window_init(struct tr_writer *window, uint32_t id, const struct tr_handle *target, uint64_t sends) {
        *window = TR_WRITER_INIT;
        for (uint64_t i = 0; i < sends; i++)
                bench_write_send(window, target, "bump");
        bench_write_ask(window, id, target, "total");
}

/* The windows that may be under way at once, with ids of their own, and the last one, which is what is left of the count. */
static void windows_init(struct tr_writer windows[static WINDOWS + 1], const struct tr_handle *target, uint64_t count) {
        for (uint32_t i = 0; i < WINDOWS; i++)
                window_init(&windows[i], i, target, WINDOW);
        window_init(&windows[WINDOWS], WINDOWS, target, count % WINDOW);
}

/* Answers what the counter said at the end. */
static int64_t run(struct bench_answers *answers, const struct tr_writer windows[static WINDOWS + 1], uint64_t count) {
        uint64_t total = count / WINDOW + 1, sent = 0, answered = 0;
        int64_t integer = -1;

        while (answered < total) {
                while (sent < total && sent - answered < WINDOWS) {
                        const struct tr_writer *next = &windows[sent + 1 == total ? WINDOWS : sent % WINDOWS];

                        bench_write(answers->fd, next->data, next->len);
                        sent++;
                }
                answered += bench_answers_take(answers, &integer);
        }
        return integer;
}

int main(int argc, char **argv) {
        struct tr_writer windows[WINDOWS + 1];
        struct bench_answers answers;
        struct tr_handle target;
        uint64_t count, began_ns, took_ns;
        int64_t before;
        int fd;

        if (argc != 4)
                bench_die("sends SOCKET HANDLE COUNT");
        target = bench_handle(argv[2]);
        count = bench_count(argv[3]);
        fd = bench_connect(argv[1]);
        bench_answers_init(&answers, fd);
        windows_init(windows, &target, count);

        before = bench_answers_total(&answers, &target);
        began_ns = bench_now_ns();
        if (run(&answers, windows, count) != before + (int64_t)count)
                bench_die("the counter did not count every send");
        took_ns = bench_now_ns() - began_ns;
        printf("{\"per_second\": %.0f}\n", (double)count * 1e9 / (double)took_ns);

        for (size_t i = 0; i <= WINDOWS; i++)
                tr_writer_deinit(&windows[i]);
        bench_answers_deinit(&answers);
        close(fd);
        return 0;
}
