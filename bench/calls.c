/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/frames.h"
#include "bench/samples.h"
#include "bench/socket.h"

/*
 * calls SOCKET DEPTH COUNT call COMPONENT OPERATION
 * calls SOCKET DEPTH COUNT ask HANDLE HANDLER
 * calls SOCKET DEPTH COUNT bare
 *
 * Has one string answered, COUNT times, with DEPTH requests outstanding on one connection, and prints how long the answers took
 * and how many there were per second. Answers come in any order. `bare` sends what a daemon sends to who serves: it is for a worker
 * that is reached without one.
 */

#define WARM_UP 1000
#define INPUT "an input of thirty-two bytes, so"
/* From 2^16 on every id takes five bytes. */
#define FIRST_ID (1u << 16)

struct slot {
        struct tr_writer request;
        uint64_t began_ns;
};

static void write_call(struct tr_writer *writer, char **argv) {
        tr_write_text(writer, "call");
        tr_write_array(writer, 3);
        tr_write_text(writer, argv[5]);
        tr_write_text(writer, argv[6]);
        tr_write_text(writer, INPUT);
}

static void write_ask(struct tr_writer *writer, char **argv) {
        const struct tr_handle target = bench_handle(argv[5]);

        tr_write_text(writer, "ask");
        tr_write_array(writer, 3);
        tr_write_handle(writer, &target);
        tr_write_text(writer, argv[6]);
        tr_write_array(writer, 1);
        tr_write_text(writer, INPUT);
}

/* As in docs/protocol.md: [operation, input, context]. */
static void write_bare(struct tr_writer *writer) {
        tr_write_text(writer, "call");
        tr_write_array(writer, 3);
        tr_write_text(writer, "echo");
        tr_write_text(writer, INPUT);
        tr_write_map(writer, 5);
        tr_write_text(writer, "component");
        tr_write_text(writer, "bench.worker");
        tr_write_text(writer, "instance");
        tr_write_text(writer, "r-0123456789abcdef");
        tr_write_text(writer, "trace");
        tr_write_text(writer, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        tr_write_text(writer, "attempt");
        tr_write_uint(writer, 1);
        tr_write_text(writer, "caller");
        tr_write_map(writer, 3);
        tr_write_text(writer, "uid");
        tr_write_uint(writer, 1000);
        tr_write_text(writer, "gid");
        tr_write_uint(writer, 1000);
        tr_write_text(writer, "pid");
        tr_write_uint(writer, 12345);
}

static void slot_init(struct slot *slot, uint32_t id, char **argv) {
        struct tr_writer *writer = &slot->request;

        tr_write_array(writer, 4);
        tr_write_int(writer, TR_FRAME_REQUEST);
        tr_write_uint(writer, id);
        if (!strcmp(argv[4], "call"))
                write_call(writer, argv);
        else if (!strcmp(argv[4], "ask"))
                write_ask(writer, argv);
        else
                write_bare(writer);
        if (tr_writer_error(writer))
                bench_die("no memory for frames");
}

static void slot_send(struct slot *slot, int fd) {
        slot->began_ns = bench_now_ns();
        bench_write(fd, slot->request.data, slot->request.len);
}

int main(int argc, char **argv) {
        bool is_bare = argc == 5 && !strcmp(argv[4], "bare");
        struct bench_answers answers;
        struct bench_samples samples;
        uint64_t depth, count, sent = 0, answered = 0, began_ns = 0;
        struct slot *slots;
        uint32_t *ids;
        int fd;

        if (!is_bare && (argc != 7 || (strcmp(argv[4], "call") && strcmp(argv[4], "ask"))))
                bench_die("calls SOCKET DEPTH COUNT (call COMPONENT OPERATION | ask HANDLE HANDLER | bare)");
        depth = bench_count(argv[2]);
        count = bench_count(argv[3]) + WARM_UP;
        slots = calloc(depth, sizeof(*slots));
        ids = calloc(depth, sizeof(*ids));
        if (!slots || !ids)
                bench_die("no memory for requests");
        fd = bench_connect(argv[1]);
        bench_answers_init(&answers, fd);
        bench_samples_init(&samples, count);
        for (uint64_t i = 0; i < depth; i++)
                slot_init(&slots[i], FIRST_ID + (uint32_t)i, argv);

        for (; sent < depth; sent++)
                slot_send(&slots[sent], fd);
        while (answered < count) {
                size_t n = bench_answers_take_ids(&answers, ids, depth);

                for (size_t i = 0; i < n; i++, answered++) {
                        struct slot *slot = &slots[ids[i] - FIRST_ID];

                        if (answered >= WARM_UP && answered < count)
                                bench_samples_add(&samples, bench_now_ns() - slot->began_ns);
                        if (answered == WARM_UP)
                                began_ns = bench_now_ns();
                        if (sent++ < count)
                                slot_send(slot, fd);
                }
        }
        bench_samples_print_with(&samples, (double)(count - WARM_UP) * 1e9 / (double)(bench_now_ns() - began_ns));

        for (uint64_t i = 0; i < depth; i++)
                tr_writer_deinit(&slots[i].request);
        free(slots);
        free(ids);
        bench_samples_deinit(&samples);
        bench_answers_deinit(&answers);
        close(fd);
        return 0;
}
