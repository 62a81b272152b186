/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output and input of a connection.
 *
 * Both are one contiguous piece of memory. Output: a frame is written behind what waits, so it can be taken back as
 * long as its call has not returned, and a batch of small frames goes out with one system call. Input: a frame that
 * came in pieces is in one piece when it is whole, so that answers are borrowed from the buffer and not copied. What
 * an unusually large frame has made of them is given back as soon as they are empty.
 */
#include "client/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Read at least this much at once: some thousand small answers. */
#define READ_BYTES (64u << 10)
/* So that a frame's beginning can lie before the room to read into. */
#define CAPACITY_MIN (2 * READ_BYTES)
/* A buffer above this is freed when it is empty. */
#define KEEP_BYTES (1u << 20)

int tr_output_flush(struct tr_output *output, int fd) {
        while (tr_output_waiting(output)) {
                ssize_t n = send(fd, output->bytes.data + output->sent, tr_output_waiting(output),
                                 MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        if (errno != EAGAIN)
                                return -errno;
                        break;
                }
                output->sent += n;
        }

        if (!tr_output_waiting(output)) {
                tr_output_drop(output);
        } else if (output->sent > output->bytes.len / 2) {
                memmove(output->bytes.data, output->bytes.data + output->sent, tr_output_waiting(output));
                output->bytes.len -= output->sent;
                output->gone += output->sent;
                output->sent = 0;
        }
        return 0;
}

void tr_output_drop(struct tr_output *output) {
        output->gone += output->sent;
        output->sent = 0;
        tr_writer_reset(&output->bytes);
        if (output->bytes.cap > KEEP_BYTES)
                tr_writer_deinit(&output->bytes);
}

void tr_output_deinit(struct tr_output *output) {
        tr_writer_deinit(&output->bytes);
        *output = (struct tr_output){ 0 };
}

/* Room for READ_BYTES behind the end: by moving what is there to the front, and by doubling where that does not do. */
static int make_room(struct tr_input *input) {
        size_t held = input->end - input->begin;
        size_t capacity = input->capacity;
        uint8_t *data;

        if (input->begin) {
                memmove(input->data, input->data + input->begin, held);
                input->begin = 0;
                input->end = held;
        }
        if (capacity - held >= READ_BYTES)
                return 0;

        capacity = capacity ? capacity * 2 : CAPACITY_MIN;
        data = realloc(input->data, capacity);
        if (!data)
                return -ENOMEM;
        input->data = data;
        input->capacity = capacity;
        return 0;
}

int tr_input_fill(struct tr_input *input, int fd, bool wait) {
        ssize_t n;

        if (input->capacity - input->end < READ_BYTES) {
                int r = make_room(input);

                if (r)
                        return r;
        }

        do
                n = recv(fd, input->data + input->end, input->capacity - input->end, wait ? 0 : MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return errno == EAGAIN ? TR_INPUT_NOTHING : errno == ECONNRESET ? TR_INPUT_END : -errno;
        if (!n)
                return TR_INPUT_END;
        input->end += n;
        return input->end == input->capacity ? TR_INPUT_FULL : 0;
}

void tr_input_drop(struct tr_input *input, size_t bytes) {
        input->begin += bytes;
        if (input->begin < input->end)
                return;
        input->begin = input->end = 0;
        if (input->capacity > KEEP_BYTES)
                tr_input_deinit(input);
}

void tr_input_deinit(struct tr_input *input) {
        free(input->data);
        *input = (struct tr_input){ 0 };
}
