/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "bench/frames.h"
#include "bench/socket.h"

/*
 * asks SOCKET HANDLE DEPTH COUNT: asks an actor of the counter example to bump,
 * COUNT times, with DEPTH asks outstanding on one connection, and prints how
 * many were answered per second. At the end the counter must have counted
 * them all.
 *
 * Requests are a ring of DEPTH encoded frames with ids of their own. The answers
 * of one actor come in order, so the frames behind the last one sent are free
 * again as answers come in.
 */

struct ring {
        struct tr_writer frames;
        size_t frame_bytes; /* of each: ids are encoded with the same width */
        size_t depth;
        size_t next; /* to be sent */
};

static void ring_init(struct ring *ring, const struct tr_handle *target, size_t depth) {
        /* from 2^16 on every id takes five bytes */
        const uint32_t first_id = 1u << 16;

        assert(depth > 0);
        *ring = (struct ring){ .depth = depth };
        for (size_t i = 0; i < depth; i++)
                bench_write_ask(&ring->frames, first_id + (uint32_t)i, target, "bump");
        ring->frame_bytes = ring->frames.len / depth;
}

static void ring_send(struct ring *ring, int fd, size_t count) {
        while (count > 0) {
                size_t n = count < ring->depth - ring->next ? count : ring->depth - ring->next;

                bench_write(fd, ring->frames.data + ring->next * ring->frame_bytes, n * ring->frame_bytes);
                ring->next = (ring->next + n) % ring->depth;
                count -= n;
        }
}

static void run(int fd, struct bench_answers *answers, struct ring *ring, uint64_t count) {
        uint64_t sent = 0, answered = 0;

        while (answered < count) {
                uint64_t room = ring->depth - (sent - answered);
                uint64_t n = room < count - sent ? room : count - sent;

                ring_send(ring, fd, n);
                sent += n;
                answered += bench_answers_take(answers, NULL);
        }
}

int main(int argc, char **argv) {
        struct bench_answers answers;
        struct tr_handle target;
        uint64_t count, began_ns, took_ns;
        struct ring ring;
        int64_t before;
        int fd;

        if (argc != 5)
                bench_die("asks SOCKET HANDLE DEPTH COUNT");
        target = bench_handle(argv[2]);
        count = bench_count(argv[4]);
        fd = bench_connect(argv[1]);
        bench_answers_init(&answers, fd);
        ring_init(&ring, &target, bench_count(argv[3]));

        before = bench_answers_total(&answers, &target);
        began_ns = bench_now_ns();
        run(fd, &answers, &ring, count);
        took_ns = bench_now_ns() - began_ns;
        if (bench_answers_total(&answers, &target) != before + (int64_t)count)
                bench_die("the counter did not count every ask");
        printf("{\"per_second\": %.0f}\n", (double)count * 1e9 / (double)took_ns);

        tr_writer_deinit(&ring.frames);
        bench_answers_deinit(&answers);
        close(fd);
        return 0;
}
