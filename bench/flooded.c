/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/frames.h"
#include "bench/samples.h"
#include "bench/socket.h"

/*
 * flooded ask COUNT SOCKET HANDLE SLOW, and its peer flooded echo COUNT: round
 * trips, one outstanding, while another process on a connection of its own
 * writes sends to one slow actor as fast as they are taken, and reads what
 * comes back.
 *
 * The echo is one thread that polls two connections, reads a piece, and writes
 * it back; from who has not read the last one it reads no further.
 */

/* Round trips before any is measured: the mailbox of the slow actor is full by then. */
#define WARM_UP 500
/* What is read at once: as much as the daemon does. */
#define PIECE_BYTES ((size_t)256 << 10)
#define CLIENTS 2

struct piece {
        uint8_t *data;
        size_t sent;
        size_t bytes;
};

static struct piece piece_new(void) {
        struct piece piece = { .data = malloc(PIECE_BYTES) };

        if (!piece.data)
                bench_die("no memory for a piece");
        return piece;
}

static bool is_over(ssize_t n) {
        return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* Writes the piece again and again, and drops what comes back, until the other side is gone. */
static void flood(int fd, struct piece *piece) {
        static uint8_t dropped[PIECE_BYTES];

        for (;;) {
                struct pollfd wait = { .fd = fd, .events = POLLIN | POLLOUT };

                if (poll(&wait, 1, -1) < 0)
                        bench_die("poll: %s", strerror(errno));
                if ((wait.revents & ~POLLOUT) && is_over(recv(fd, dropped, sizeof(dropped), MSG_DONTWAIT)))
                        return;
                if (!(wait.revents & POLLOUT))
                        continue;
                ssize_t n = send(fd, piece->data + piece->sent, piece->bytes - piece->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (is_over(n))
                        return;
                piece->sent += n > 0 ? (size_t)n : 0;
                piece->sent %= piece->bytes;
        }
}

/* A piece full of sends that are answered. */
static void fill(struct piece *piece, const struct tr_handle *target) {
        struct tr_writer frame = TR_WRITER_INIT;

        for (uint32_t id = 0; piece->bytes + frame.len <= PIECE_BYTES; id++) {
                memcpy(piece->data + piece->bytes, frame.data, frame.len);
                piece->bytes += frame.len;
                tr_writer_reset(&frame);
                tr_write_array(&frame, 4);
                tr_write_int(&frame, TR_FRAME_REQUEST);
                tr_write_uint(&frame, id % 128);
                tr_write_text(&frame, "send");
                tr_write_array(&frame, 3);
                tr_write_handle(&frame, target);
                tr_write_text(&frame, "put");
                tr_write_array(&frame, 0);
                if (tr_writer_error(&frame))
                        bench_die("no memory for frames");
        }
        tr_writer_deinit(&frame);
}

/* One turn for a connection of the echo's. Answers what it waits for, or 0 where it is over. */
static short echo(int fd, struct piece *piece) {
        ssize_t n;

        if (piece->sent == piece->bytes) {
                n = recv(fd, piece->data, PIECE_BYTES, MSG_DONTWAIT);
                if (is_over(n))
                        return 0;
                piece->sent = 0;
                piece->bytes = n > 0 ? (size_t)n : 0;
        }
        n = send(fd, piece->data + piece->sent, piece->bytes - piece->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && is_over(n))
                return 0;
        piece->sent += n > 0 ? (size_t)n : 0;
        return piece->sent < piece->bytes ? POLLOUT : POLLIN;
}

/* Until the first client is gone. */
static void serve(const int fds[CLIENTS]) {
        struct piece pieces[CLIENTS];
        struct pollfd waits[CLIENTS];

        for (int i = 0; i < CLIENTS; i++) {
                pieces[i] = piece_new();
                waits[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
        }
        while (waits[0].fd >= 0) {
                if (poll(waits, CLIENTS, -1) < 0)
                        bench_die("poll: %s", strerror(errno));
                for (int i = 0; i < CLIENTS; i++) {
                        if (!waits[i].revents)
                                continue;
                        waits[i].events = echo(fds[i], &pieces[i]);
                        if (!waits[i].events)
                                waits[i].fd = -1;
                }
        }
        for (int i = 0; i < CLIENTS; i++)
                free(pieces[i].data);
}

static void measure(int fd, const struct tr_handle *target, uint64_t count, bool answers_are_frames) {
        struct tr_writer request = TR_WRITER_INIT;
        struct bench_answers answers;
        struct bench_samples samples;
        uint8_t data[256];

        bench_answers_init(&answers, fd);
        bench_samples_init(&samples, count);
        bench_write_ask(&request, 1, target, "bump");
        for (uint64_t i = 0; i < WARM_UP + count; i++) {
                uint64_t began_ns = bench_now_ns();

                bench_write(fd, request.data, request.len);
                if (answers_are_frames)
                        while (bench_answers_take(&answers, NULL) == 0)
                                ;
                else
                        for (size_t at = 0; at < request.len;)
                                at += bench_read(fd, data, request.len - at);
                if (i >= WARM_UP)
                        bench_samples_add(&samples, bench_now_ns() - began_ns);
        }
        bench_samples_print(&samples);
        tr_writer_deinit(&request);
        bench_samples_deinit(&samples);
        bench_answers_deinit(&answers);
}

static pid_t fork_or_die(void) {
        pid_t child;

        fflush(stdout);
        child = fork();
        if (child < 0)
                bench_die("fork: %s", strerror(errno));
        return child;
}

static pid_t flooder(int fd, const struct tr_handle *target) {
        pid_t child = fork_or_die();

        if (child > 0)
                return child;
        struct piece piece = piece_new();

        fill(&piece, target);
        flood(fd, &piece);
        _exit(0);
}

static void end(pid_t child) {
        kill(child, SIGKILL);
        if (waitpid(child, NULL, 0) < 0)
                bench_die("waitpid: %s", strerror(errno));
}

static void ask(char **arguments, uint64_t count) {
        struct tr_handle target = bench_handle(arguments[1]), slow = bench_handle(arguments[2]);
        int fd = bench_connect(arguments[0]), other = bench_connect(arguments[0]);
        pid_t flooding = flooder(other, &slow);

        close(other);
        measure(fd, &target, count, true);
        close(fd);
        end(flooding);
}

static void echo_peer(uint64_t count) {
        const struct tr_handle handle = { 0 };
        int near[CLIENTS], far[CLIENTS];
        pid_t serving, flooding;

        for (int i = 0; i < CLIENTS; i++) {
                int fds[2];

                if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                        bench_die("socketpair: %s", strerror(errno));
                near[i] = fds[0];
                far[i] = fds[1];
        }
        serving = fork_or_die();
        if (serving == 0) {
                close(near[0]);
                close(near[1]);
                serve(far);
                _exit(0);
        }
        close(far[0]);
        close(far[1]);
        flooding = flooder(near[1], &handle);
        close(near[1]);
        measure(near[0], &handle, count, false);
        close(near[0]);
        end(flooding);
        end(serving);
}

int main(int argc, char **argv) {
        if (argc == 6 && strcmp(argv[1], "ask") == 0)
                ask(argv + 3, bench_count(argv[2]));
        else if (argc == 3 && strcmp(argv[1], "echo") == 0)
                echo_peer(bench_count(argv[2]));
        else
                bench_die("flooded ask COUNT SOCKET HANDLE SLOW, or flooded echo COUNT");
        return 0;
}
