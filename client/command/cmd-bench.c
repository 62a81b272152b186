/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench [TARGET HANDLER [ARG...]]: how long the running daemon takes to answer, and how much it answers.
 *
 * Measured is what a program sees that uses the library: from the call that asks until the callback with the answer.
 * Without a target it is `ping`, which no actor is needed for, and nothing is left behind. Whatever ends it early (an
 * interrupt, a refusal, the end of the daemon), what was measured until then is printed first.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "client/command/ask-lines.h"
#include "client/command/command.h"
#include "client/command/interrupt.h"
#include "client/command/latency.h"
#include "client/command/link.h"
#include "client/command/message.h"
#include "client/command/progress.h"
#include "client/command/report.h"
#include "client/command/show.h"

#define NUMBER 10000
#define NUMBER_MAX 10000000
#define BAR_WIDTH 50

struct bench_options {
        uint64_t number;
        uint64_t parallel;
};

static const struct tr_option options[] = {
        { "-n", TR_OPTION_COUNT, offsetof(struct bench_options, number) },
        { "-P", TR_OPTION_COUNT, offsetof(struct bench_options, parallel) },
        { 0 },
};

static const struct {
        const char *name;
        unsigned int thousandths;
} quantiles[] = { { "p50", 500 }, { "p90", 900 }, { "p99", 990 }, { "p99.9", 999 }, { "max", 1000 } };
#define QUANTILES (sizeof(quantiles) / sizeof(quantiles[0]))

struct bench {
        struct tr_invocation *invocation;
        struct troupe_value args;
        uint64_t number;
        uint64_t parallel;

        struct flight *flights; /* one for each that may be under way */
        struct flight *idle;
        uint64_t sent;
        uint64_t answered;
        uint64_t began_ns;
        uint64_t ended_ns; /* when the last answer came */
        struct tr_latencies latencies;
        struct tr_progress progress;
        struct tr_problem problem; /* the first */
        bool is_over;              /* nothing more is sent or counted */
};

struct flight {
        struct bench *bench;
        struct flight *next; /* idle */
        uint64_t sent_ns;
};

static uint64_t now_ns(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void fail(struct bench *bench, int result) {
        bench->is_over = true;
        if (!bench->problem.is_set)
                tr_problem_set(&bench->problem, bench->invocation->troupe, result);
}

static void on_answer(struct troupe *troupe, int result, const struct troupe_value *answer, void *userdata) {
        struct flight *flight = userdata;
        struct bench *bench = flight->bench;
        uint64_t now = now_ns();

        flight->next = bench->idle;
        bench->idle = flight;
        if (bench->is_over)
                return;
        if (!result)
                result = tr_latencies_add(&bench->latencies, now - flight->sent_ns);
        if (result) {
                fail(bench, result);
                return;
        }
        bench->answered++;
        bench->ended_ns = now;
}

static int post(struct bench *bench, struct flight *flight) {
        const char *const *operands = bench->invocation->words.operands;
        struct troupe *troupe = bench->invocation->troupe;

        if (!operands[0])
                return troupe_request_async(troupe, "ping", on_answer, flight, NULL, NULL);
        return troupe_ask_async(troupe, operands[0], operands[1], NULL, on_answer, flight, NULL, "*v", &bench->args);
}

static void send_more(struct bench *bench) {
        while (!bench->is_over && bench->idle && bench->sent < bench->number) {
                struct flight *flight = bench->idle;
                int r;

                flight->sent_ns = now_ns();
                r = post(bench, flight);
                if (r == -ENOBUFS)
                        return;
                if (r) {
                        fail(bench, r);
                        return;
                }
                bench->idle = flight->next;
                bench->sent++;
        }
}

static void measure(struct bench *bench) {
        bench->began_ns = bench->ended_ns = now_ns();
        for (;;) {
                send_more(bench);
                if (bench->is_over || bench->answered == bench->number)
                        break;
                switch (tr_link_step(bench->invocation, NULL, -1)) {
                case TR_STEP_INTERRUPTED:
                        bench->is_over = true;
                        break;
                case TR_STEP_OVER:
                        fail(bench, -ENOTCONN);
                        break;
                case TR_STEP_DONE:
                        break;
                }
                tr_progress_update(&bench->progress, bench->answered, "answers", 0);
        }
        tr_progress_clear(&bench->progress);
        tr_latencies_sort(&bench->latencies);
}

static double seconds_of(const struct bench *bench) {
        return (bench->ended_ns - bench->began_ns) / 1e9;
}

/* 0 where there is nothing to divide. */
static double rate_of(const struct bench *bench) {
        return bench->ended_ns > bench->began_ns ? bench->answered / seconds_of(bench) : 0;
}

/* With three digits at most: 950ns, 31.2us, 1.5ms, 12s. */
static const char *time_text(uint64_t ns, char text[static 32]) {
        static const char *const units[] = { "ns", "us", "ms", "s" };
        double number = ns;
        size_t unit = 0;

        while (number >= 999.5 && unit < 3) {
                number /= 1000;
                unit++;
        }
        snprintf(text, 32, "%.*g%s", number >= 999.5 ? 10 : 3, number, units[unit]);
        return text;
}

static void print_bars(const struct bench *bench) {
        struct tr_latency_bar bars[TR_LATENCY_BARS_MAX];
        size_t count = tr_latencies_bars(&bench->latencies, bars), most = 1;
        char from[32], to[32];

        for (size_t i = 0; i < count; i++)
                if (bars[i].count > most)
                        most = bars[i].count;
        for (size_t i = 0; i < count; i++) {
                int width = (bars[i].count * BAR_WIDTH + most / 2) / most;

                printf("%6s - %6s |", time_text(bars[i].from_ns, from), time_text(bars[i].to_ns, to));
                for (int column = 0; column < width; column++)
                        putchar('#');
                if (bars[i].count)
                        printf("%s %zu", width ? "" : ".", bars[i].count);
                putchar('\n');
        }
}

static void print_text(const struct bench *bench) {
        const char *const *operands = bench->invocation->words.operands;
        char text[32];

        if (operands[0])
                printf("ask %s %s", operands[0], operands[1]);
        else
                printf("ping");
        printf(": %" PRIu64 " answers in %.3f s, %.0f a second, %" PRIu64 " outstanding\n\n", bench->answered,
               seconds_of(bench), rate_of(bench), bench->parallel);
        for (size_t i = 0; i < QUANTILES; i++)
                printf("%s%s %s", i ? "   " : "", quantiles[i].name,
                       time_text(tr_latencies_quantile(&bench->latencies, quantiles[i].thousandths), text));
        printf("\n\n");
        print_bars(bench);
}

static void write_us(struct tr_writer *writer, const char *key, uint64_t ns) {
        tr_write_text(writer, key);
        tr_write_float(writer, ns / 1e3);
}

static void write_bars(const struct bench *bench, struct tr_writer *writer) {
        struct tr_latency_bar bars[TR_LATENCY_BARS_MAX];
        size_t count = tr_latencies_bars(&bench->latencies, bars);

        tr_write_array(writer, count);
        for (size_t i = 0; i < count; i++) {
                tr_write_map(writer, 3);
                write_us(writer, "from_us", bars[i].from_ns);
                write_us(writer, "to_us", bars[i].to_ns);
                tr_write_text(writer, "count");
                tr_write_uint(writer, bars[i].count);
        }
}

static void write_json(const struct bench *bench, struct tr_writer *writer) {
        const char *const *operands = bench->invocation->words.operands;

        tr_write_map(writer, operands[0] ? 9 : 7);
        tr_write_text(writer, "operation");
        tr_write_text(writer, operands[0] ? "ask" : "ping");
        if (operands[0]) {
                tr_write_text(writer, "target");
                tr_write_text(writer, operands[0]);
                tr_write_text(writer, "handler");
                tr_write_text(writer, operands[1]);
        }
        tr_write_text(writer, "answers");
        tr_write_uint(writer, bench->answered);
        tr_write_text(writer, "outstanding");
        tr_write_uint(writer, bench->parallel);
        tr_write_text(writer, "seconds");
        tr_write_float(writer, seconds_of(bench));
        tr_write_text(writer, "per_second");
        tr_write_float(writer, rate_of(bench));
        tr_write_text(writer, "latency_us");
        tr_write_map(writer, QUANTILES);
        for (size_t i = 0; i < QUANTILES; i++)
                if (bench->answered) {
                        write_us(writer, quantiles[i].name,
                                 tr_latencies_quantile(&bench->latencies, quantiles[i].thousandths));
                } else {
                        tr_write_text(writer, quantiles[i].name);
                        tr_write_nil(writer);
                }
        tr_write_text(writer, "histogram");
        write_bars(bench, writer);
}

static int print_json(const struct bench *bench) {
        struct tr_writer writer = TR_WRITER_INIT;
        struct troupe_value value;
        int status;

        write_json(bench, &writer);
        value = (struct troupe_value){ writer.data, writer.len };
        status = tr_writer_error(&writer) ? tr_report_errno(bench->invocation, -ENOMEM)
                                          : tr_show_answer(bench->invocation, &value, TR_SHOW_JSON);
        tr_writer_deinit(&writer);
        return status;
}

static int conclude(const struct bench *bench) {
        int status = 0;

        if (bench->invocation->json)
                status = print_json(bench);
        else if (bench->answered)
                print_text(bench);
        if (!status)
                status = tr_show_end(bench->invocation);
        if (bench->problem.is_set)
                status = tr_problem_report(&bench->problem, bench->invocation, 0);
        return tr_interrupt_happened() ? tr_interrupt_exit() : status;
}

/* The first request of a connection is not like the others, and what is wrong with the daemon is said at once. */
static int warm_up(struct tr_invocation *invocation) {
        struct tr_reply reply = { 0 };
        int r = troupe_request_async(invocation->troupe, "ping", tr_link_on_reply, &reply, &reply.pending, NULL);
        int status = tr_link_wait(invocation, r, &reply);

        tr_reply_deinit(&reply);
        return status;
}

static int prepare(struct bench *bench) {
        int status = tr_message_args(bench->invocation, &bench->args);

        if (status)
                return status;
        bench->flights = calloc(bench->parallel, sizeof(*bench->flights));
        if (!bench->flights)
                return tr_report_errno(bench->invocation, -ENOMEM);
        for (uint64_t i = 0; i < bench->parallel; i++) {
                bench->flights[i] = (struct flight){ bench, bench->idle, 0 };
                bench->idle = &bench->flights[i];
        }
        status = tr_link_open(bench->invocation);
        return status ? status : warm_up(bench->invocation);
}

static int run(struct tr_invocation *invocation, const void *chosen) {
        const struct bench_options *chosen_options = chosen;
        struct bench bench = {
                .invocation = invocation,
                .number = chosen_options->number ? chosen_options->number : NUMBER,
                .parallel = chosen_options->parallel ? chosen_options->parallel : 1,
        };
        int status;

        if (invocation->words.operands[0] && !invocation->words.operands[1])
                return tr_report_usage(invocation, "HANDLER is missing");
        if (bench.number > NUMBER_MAX)
                return tr_report_usage(invocation, "-n is at most %d", NUMBER_MAX);
        if (bench.parallel > TR_ASK_LINES_PARALLEL_MAX)
                return tr_report_usage(invocation, "-P is at most %d", TR_ASK_LINES_PARALLEL_MAX);
        status = prepare(&bench);
        if (!status) {
                measure(&bench);
                status = conclude(&bench);
        }
        /* what is still under way is dropped with the connection, and its callbacks are about the flights */
        bench.is_over = true;
        tr_link_close(invocation);
        free(bench.flights);
        tr_latencies_deinit(&bench.latencies);
        tr_problem_deinit(&bench.problem);
        troupe_value_free(&bench.args);
        return status;
}

const struct tr_command tr_cmd_bench = {
        .name = "bench",
        .usage = "[-n N] [-P N] [TARGET HANDLER [ARG...]]",
        .summary = "measure how fast the daemon, or an actor, answers",
        .details = "  -n N          so many requests (10000)\n"
                   "  -P N          so many at a time (1)\n"
                   "\n"
                   "Without TARGET it is the daemon itself that is asked, by ping.\n",
        .syntax = { options, sizeof(struct bench_options), { "TARGET", "HANDLER" }, 0, true },
        .run = run,
};
