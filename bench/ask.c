/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <unistd.h>

#include "bench/frames.h"
#include "bench/samples.h"
#include "bench/socket.h"

/*
 * ask SOCKET HANDLE COUNT: asks an actor of the counter example to bump, one
 * outstanding, and prints how long the answers took. Its peer is bench/echo.
 */

/* Round trips before any is measured: caches, the scheduler, and the actor's spinning settle. */
#define WARM_UP 1000

int main(int argc, char **argv) {
        struct tr_writer request = TR_WRITER_INIT;
        struct bench_answers answers;
        struct bench_samples samples;
        struct tr_handle target;
        uint64_t count, began_ns;
        int fd;

        if (argc != 4)
                bench_die("ask SOCKET HANDLE COUNT");
        target = bench_handle(argv[2]);
        count = bench_count(argv[3]);
        fd = bench_connect(argv[1]);
        bench_answers_init(&answers, fd);
        bench_samples_init(&samples, count);
        bench_write_ask(&request, 1, &target, "bump");

        for (uint64_t i = 0; i < WARM_UP + count; i++) {
                began_ns = bench_now_ns();
                bench_write(fd, request.data, request.len);
                while (bench_answers_take(&answers, NULL) == 0)
                        ;
                if (i >= WARM_UP)
                        bench_samples_add(&samples, bench_now_ns() - began_ns);
        }
        bench_samples_print(&samples);

        tr_writer_deinit(&request);
        bench_samples_deinit(&samples);
        bench_answers_deinit(&answers);
        close(fd);
        return 0;
}
