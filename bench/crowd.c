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
 * crowd SOCKET HANDLE CONNECTIONS DEPTH COUNT: CONNECTIONS connections ask for `bump` with DEPTH asks outstanding each, at least
 * COUNT times in all, and what is printed is how many were answered per second, and how many that were.
 *
 * It does what redis-benchmark does with -c and -P, on one thread too: a connection sends DEPTH asks in one piece, waits until all are
 * answered, in whatever order, and sends the next piece.
 */

struct member {
        struct bench_answers answers;
        size_t to_come; /* of the present piece */
};

struct crowd {
        struct member *members;
        struct pollfd *waits;
        size_t size;
        size_t depth;
        struct tr_writer piece; /* asks whose ids differ */
};

static void crowd_init(struct crowd *crowd, const char *socket, const struct tr_handle *target, size_t size, size_t depth) {
        *crowd = (struct crowd){ .size = size, .depth = depth };
        crowd->members = calloc(size, sizeof(*crowd->members));
        crowd->waits = calloc(size, sizeof(*crowd->waits));
        if (!crowd->members || !crowd->waits)
                bench_die("no memory for %zu connections", size);
        for (size_t i = 0; i < size; i++) {
                bench_answers_init(&crowd->members[i].answers, bench_connect(socket));
                crowd->waits[i] = (struct pollfd){ .fd = crowd->members[i].answers.fd, .events = POLLIN };
        }
        for (size_t i = 0; i < depth; i++)
                bench_write_ask(&crowd->piece, (uint32_t)i, target, "bump");
}

static void crowd_deinit(struct crowd *crowd) {
        for (size_t i = 0; i < crowd->size; i++) {
                close(crowd->members[i].answers.fd);
                bench_answers_deinit(&crowd->members[i].answers);
        }
        tr_writer_deinit(&crowd->piece);
        free(crowd->members);
        free(crowd->waits);
}

static void send_piece(struct crowd *crowd, struct member *member) {
        bench_write(member->answers.fd, crowd->piece.data, crowd->piece.len);
        member->to_come = crowd->depth;
}

/* Answers how many were answered: whole pieces of each connection, the last of which end when `count` are reached. */
static uint64_t run(struct crowd *crowd, uint64_t count) {
        uint64_t answered = 0, sent = crowd->size * crowd->depth;

        for (size_t i = 0; i < crowd->size; i++)
                send_piece(crowd, &crowd->members[i]);
        while (answered < sent) {
                if (poll(crowd->waits, crowd->size, -1) < 0)
                        bench_die("poll: %s", strerror(errno));
                for (size_t i = 0; i < crowd->size; i++) {
                        struct member *member = &crowd->members[i];

                        if (!crowd->waits[i].revents)
                                continue;
                        size_t taken = bench_answers_take(&member->answers, NULL);

                        answered += taken;
                        member->to_come -= taken;
                        if (member->to_come > 0 || sent >= count)
                                continue;
                        send_piece(crowd, member);
                        sent += crowd->depth;
                }
        }
        return answered;
}

int main(int argc, char **argv) {
        struct crowd crowd;
        struct tr_handle target;
        uint64_t answered, began_ns, took_ns;

        if (argc != 6)
                bench_die("crowd SOCKET HANDLE CONNECTIONS DEPTH COUNT");
        target = bench_handle(argv[2]);
        crowd_init(&crowd, argv[1], &target, bench_count(argv[3]), bench_count(argv[4]));
        began_ns = bench_now_ns();
        answered = run(&crowd, bench_count(argv[5]));
        took_ns = bench_now_ns() - began_ns;
        printf("{\"per_second\": %.0f, \"answered\": %llu}\n", (double)answered * 1e9 / (double)took_ns,
               (unsigned long long)answered);
        crowd_deinit(&crowd);
        return 0;
}
