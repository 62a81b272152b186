/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/frames.h"
#include "bench/handover.h"
#include "bench/samples.h"
#include "bench/socket.h"

/*
 * echo MODE COUNT: the peers of bench/ask. Round trips of the same bytes between
 * two processes over a Unix socket, one outstanding. The server
 *
 *   raw      writes back what it reads
 *   thread   has a reader that hands each message to a second thread, which writes
 *            it back; that one spins a little before it parks, as an actor does
 *   parking  the same, and the second thread parks at once
 *   polling  like thread, and the reader waits in epoll, as who has more than one
 *            connection must: the kernel then prefers another CPU for it
 */

#define WARM_UP 1000

struct answerer {
        struct bench_handover handover;
        int fd;
};

static void read_whole(int fd, uint8_t *data, size_t bytes) {
        for (size_t at = 0; at < bytes;)
                at += bench_read(fd, data + at, bytes - at);
}

static void *answer(void *userdata) {
        struct answerer *answerer = userdata;
        uint8_t data[BENCH_HANDOVER_MAX];

        for (;;) {
                size_t bytes = bench_handover_take(&answerer->handover, data);

                bench_write(answerer->fd, data, bytes);
        }
        return NULL;
}

/* Serves `count` messages of `bytes` each. */
static void serve_raw(int fd, size_t bytes, uint64_t count) {
        uint8_t data[BENCH_HANDOVER_MAX];

        for (uint64_t i = 0; i < count; i++) {
                read_whole(fd, data, bytes);
                bench_write(fd, data, bytes);
        }
}

static int epoll_of(int fd) {
        struct epoll_event event = { .events = EPOLLIN };
        int epoll = epoll_create1(EPOLL_CLOEXEC);

        if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
                bench_die("epoll: %s", strerror(errno));
        return epoll;
}

static void serve_by_thread(int fd, size_t bytes, uint64_t count, bool spins, bool polls) {
        /* outlives this function: the other thread ends with the process */
        static struct answerer answerer;
        int epoll = polls ? epoll_of(fd) : -1;
        uint8_t data[BENCH_HANDOVER_MAX];
        struct epoll_event event;
        pthread_t thread;
        int r;

        answerer.fd = fd;
        bench_handover_init(&answerer.handover, spins);
        r = pthread_create(&thread, NULL, answer, &answerer);
        if (r)
                bench_die("thread: %s", strerror(r));
        for (uint64_t i = 0; i < count; i++) {
                if (polls && epoll_wait(epoll, &event, 1, -1) < 0)
                        bench_die("epoll: %s", strerror(errno));
                read_whole(fd, data, bytes);
                bench_handover_put(&answerer.handover, data, bytes);
        }
        /* the last answer is written when the client has hung up */
        if (read(fd, data, 1) != 0)
                bench_die("more than was to come");
}

static void serve(const char *mode, int fd, size_t bytes, uint64_t count) {
        if (strcmp(mode, "raw") == 0)
                serve_raw(fd, bytes, count);
        else if (strcmp(mode, "thread") == 0)
                serve_by_thread(fd, bytes, count, true, false);
        else if (strcmp(mode, "parking") == 0)
                serve_by_thread(fd, bytes, count, false, false);
        else if (strcmp(mode, "polling") == 0)
                serve_by_thread(fd, bytes, count, true, true);
        else
                bench_die("%s: not raw, thread, parking or polling", mode);
}

static void measure(int fd, const struct tr_writer *message, uint64_t count) {
        struct bench_samples samples;
        uint8_t data[BENCH_HANDOVER_MAX];
        uint64_t began_ns;

        bench_samples_init(&samples, count);
        for (uint64_t i = 0; i < WARM_UP + count; i++) {
                began_ns = bench_now_ns();
                bench_write(fd, message->data, message->len);
                read_whole(fd, data, message->len);
                if (i >= WARM_UP)
                        bench_samples_add(&samples, bench_now_ns() - began_ns);
        }
        bench_samples_print(&samples);
        bench_samples_deinit(&samples);
}

int main(int argc, char **argv) {
        struct tr_writer message = TR_WRITER_INIT;
        const struct tr_handle handle = { 0 };
        uint64_t count;
        int fds[2], status;
        pid_t server;

        if (argc != 3)
                bench_die("echo raw|thread|parking|polling COUNT");
        count = bench_count(argv[2]);
        bench_write_ask(&message, 1, &handle, "bump");
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
                bench_die("socketpair: %s", strerror(errno));

        server = fork();
        if (server < 0)
                bench_die("fork: %s", strerror(errno));
        if (server == 0) {
                close(fds[0]);
                serve(argv[1], fds[1], message.len, WARM_UP + count);
                return 0;
        }
        close(fds[1]);
        measure(fds[0], &message, count);
        close(fds[0]);
        tr_writer_deinit(&message);
        if (waitpid(server, &status, 0) < 0 || status != 0)
                bench_die("the server failed");
        return 0;
}
