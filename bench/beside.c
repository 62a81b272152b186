/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <unistd.h>

#include "bench/frames.h"
#include "bench/samples.h"
#include "bench/socket.h"

/*
 * beside SOCKET HANDLE COUNT [SPIN]: asks a pool of bench/pools.lua to bump, one outstanding, COUNT times at most, and prints how
 * long the answers took. With SPIN it asks it to spin so often first, on the same connection, so that one of the workers is busy with
 * that, and goes on until that has been answered. What was asked meanwhile and is answered later is measured too.
 */

/* What `spin` answers; `bump` answers a count. */
#define SPUN (-1)

struct run {
        struct tr_writer bump;
        struct bench_answers answers;
        struct bench_samples samples;
        bool is_over; /* the spinning is */
};

/* Waits for answers; how many of them are of bumps. */
static size_t take_bumps(struct run *run) {
        int64_t last = 0;
        size_t taken = bench_answers_take(&run->answers, &last);

        /* with one bump outstanding, what comes beside an answer is the other's */
        if (taken == 2 || (taken == 1 && last == SPUN)) {
                run->is_over = true;
                taken--;
        }
        return taken;
}

static void run_until_over(struct run *run, uint64_t count) {
        for (uint64_t i = 0; i < count && !run->is_over; i++) {
                uint64_t began_ns = bench_now_ns();

                bench_write(run->answers.fd, run->bump.data, run->bump.len);
                while (take_bumps(run) == 0)
                        ;
                bench_samples_add(&run->samples, bench_now_ns() - began_ns);
        }
}

int main(int argc, char **argv) {
        struct run run = { .bump = TR_WRITER_INIT };
        struct tr_writer spin = TR_WRITER_INIT;
        struct tr_handle target;
        uint64_t count;

        if (argc != 4 && argc != 5)
                bench_die("beside SOCKET HANDLE COUNT [SPIN]");
        target = bench_handle(argv[2]);
        count = bench_count(argv[3]);
        bench_answers_init(&run.answers, bench_connect(argv[1]));
        bench_samples_init(&run.samples, count);
        bench_write_ask(&run.bump, 1, &target, "bump");

        if (argc == 5) {
                bench_write_ask_with(&spin, 2, &target, "spin", (int64_t)bench_count(argv[4]));
                bench_write(run.answers.fd, spin.data, spin.len);
        }
        run_until_over(&run, count);
        if (argc == 5 && !run.is_over)
                bench_die("%s bumps were answered before one spin was", argv[3]);
        bench_samples_print(&run.samples);

        tr_writer_deinit(&spin);
        tr_writer_deinit(&run.bump);
        bench_samples_deinit(&run.samples);
        close(run.answers.fd);
        bench_answers_deinit(&run.answers);
        return 0;
}
