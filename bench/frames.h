/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_BENCH_FRAMES_H
#define TR_BENCH_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"
#include "proto/handle.h"
#include "proto/value.h"

/*
 * Frames to send, encoded before anything is measured, and the answers to them.
 * Everything ends the program where it fails, an error answer included.
 */

/* A handle's text. */
struct tr_handle bench_handle(const char *text);

/* Appends a request that asks `handler` without arguments. */
void bench_write_ask(struct tr_writer *writer, uint32_t id, const struct tr_handle *target, const char *handler);
/* The same with one argument. */
void bench_write_ask_with(struct tr_writer *writer, uint32_t id, const struct tr_handle *target, const char *handler,
                          int64_t argument);
/* Appends a request of another method about the target. */
void bench_write_request(struct tr_writer *writer, uint32_t id, const char *method, const struct tr_handle *target);
/* Appends a notification that sends it. */
void bench_write_send(struct tr_writer *writer, const struct tr_handle *target, const char *handler);

/* Reads answers from one connection. */
struct bench_answers {
        int fd;
        struct tr_scanner scanner;
        uint8_t *data;
        size_t begin; /* of what is not scanned yet */
        size_t end;
};

void bench_answers_init(struct bench_answers *answers, int fd);
void bench_answers_deinit(struct bench_answers *answers);
/* Waits for answers with one read, and takes all that are whole: how many (may be 0). Where the last one's
 * result is an integer it is put into *ret_integer (may be NULL). */
size_t bench_answers_take(struct bench_answers *answers, int64_t *ret_integer);
/* The same; puts the ids of those answers into `ids`, which has room for as many as there may be. */
size_t bench_answers_take_ids(struct bench_answers *answers, uint32_t *ids, size_t room);
/* Asks a counter for its total, with nothing else under way. */
int64_t bench_answers_total(struct bench_answers *answers, const struct tr_handle *target);

#endif
