/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "bench/frames.h"

#include <stdlib.h>
#include <string.h>

#include "bench/socket.h"

/* One read takes what a busy connection has in flight; frames here have tens of bytes. */
#define ANSWERS_BYTES (64u << 10)

struct tr_handle bench_handle(const char *text) {
        struct tr_handle handle;

        if (!tr_handle_parse(text, strlen(text), &handle))
                bench_die("%s: not a handle", text);
        return handle;
}

static void write_params(struct tr_writer *writer, const struct tr_handle *target, const char *handler, const int64_t *argument) {
        tr_write_array(writer, 3);
        tr_write_handle(writer, target);
        tr_write_text(writer, handler);
        tr_write_array(writer, argument ? 1 : 0);
        if (argument)
                tr_write_int(writer, *argument);
        if (tr_writer_error(writer))
                bench_die("no memory for frames");
}

static void write_head(struct tr_writer *writer, uint32_t id, const char *method) {
        tr_write_array(writer, 4);
        tr_write_int(writer, TR_FRAME_REQUEST);
        tr_write_uint(writer, id);
        tr_write_text(writer, method);
}

void bench_write_ask(struct tr_writer *writer, uint32_t id, const struct tr_handle *target, const char *handler) {
        write_head(writer, id, "ask");
        write_params(writer, target, handler, NULL);
}

void bench_write_ask_with(struct tr_writer *writer, uint32_t id, const struct tr_handle *target, const char *handler,
                          int64_t argument) {
        write_head(writer, id, "ask");
        write_params(writer, target, handler, &argument);
}

void bench_write_request(struct tr_writer *writer, uint32_t id, const char *method, const struct tr_handle *target) {
        write_head(writer, id, method);
        tr_write_array(writer, 1);
        tr_write_handle(writer, target);
        if (tr_writer_error(writer))
                bench_die("no memory for frames");
}

void bench_write_send(struct tr_writer *writer, const struct tr_handle *target, const char *handler) {
        tr_write_array(writer, 3);
        tr_write_int(writer, TR_FRAME_NOTIFICATION);
        tr_write_text(writer, "send");
        write_params(writer, target, handler, NULL);
}

void bench_answers_init(struct bench_answers *answers, int fd) {
        *answers = (struct bench_answers){ .fd = fd, .data = malloc(ANSWERS_BYTES) };
        if (!answers->data)
                bench_die("no memory for answers");
        tr_scanner_init(&answers->scanner, ANSWERS_BYTES);
}

void bench_answers_deinit(struct bench_answers *answers) {
        free(answers->data);
        *answers = (struct bench_answers){ .fd = -1 };
}

/* An error is the pair that connections get which did not choose a form: [kind, text]. */
_Noreturn static void die_of(const struct tr_frame *frame) {
        struct tr_reader reader = tr_reader(frame->error.data, frame->error.bytes);
        struct tr_token pair, kind, text;

        if (tr_read(&reader, &pair) || tr_read(&reader, &kind) || tr_read(&reader, &text) || text.type != TR_STR)
                bench_die("an error of an unknown form");
        bench_die("%.*s", (int)text.len, (const char *)text.data);
}

static void take_answer(const struct tr_frame *frame, int64_t *ret_integer) {
        struct tr_reader reader = tr_reader(frame->error.data, frame->error.bytes);
        struct tr_token token;

        if (frame->type != TR_FRAME_RESPONSE)
                bench_die("a frame that is no answer");
        if (tr_read(&reader, &token) || token.type != TR_NIL)
                die_of(frame);
        if (!ret_integer)
                return;
        reader = tr_reader(frame->result.data, frame->result.bytes);
        if (tr_read(&reader, &token) == 0 && token.type == TR_INT)
                *ret_integer = token.integer;
}

static size_t take(struct bench_answers *answers, int64_t *ret_integer, uint32_t *ids, size_t room) {
        struct tr_refusal refusal;
        struct tr_frame frame;
        size_t taken = 0;
        enum tr_scan scan;

        /* what is left of a piece is part of one frame: moving it is cheap */
        memmove(answers->data, answers->data + answers->begin, answers->end - answers->begin);
        answers->end -= answers->begin;
        answers->begin = 0;
        answers->end += bench_read(answers->fd, answers->data + answers->end, ANSWERS_BYTES - answers->end);

        while (answers->begin < answers->end) {
                scan = tr_scan(&answers->scanner, answers->data + answers->begin, answers->end - answers->begin, &frame,
                               &refusal);
                if (scan == TR_SCAN_MORE)
                        break;
                if (scan != TR_SCAN_FRAME)
                        bench_die("an answer that is not a frame");
                take_answer(&frame, ret_integer);
                if (ids && taken == room)
                        bench_die("more answers than requests");
                if (ids)
                        ids[taken] = frame.id;
                answers->begin += frame.bytes;
                taken++;
        }
        return taken;
}

size_t bench_answers_take(struct bench_answers *answers, int64_t *ret_integer) {
        return take(answers, ret_integer, NULL, 0);
}

size_t bench_answers_take_ids(struct bench_answers *answers, uint32_t *ids, size_t room) {
        return take(answers, NULL, ids, room);
}

int64_t bench_answers_total(struct bench_answers *answers, const struct tr_handle *target) {
        struct tr_writer request = TR_WRITER_INIT;
        int64_t total = -1;

        bench_write_ask(&request, 1, target, "total");
        bench_write(answers->fd, request.data, request.len);
        while (bench_answers_take(answers, &total) == 0)
                ;
        tr_writer_deinit(&request);
        return total;
}
