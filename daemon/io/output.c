/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of a connection. What was sent is dropped from the front only when nothing is left, or when it is more
 * than half of the buffer: each byte is moved at most once on the average, and a buffer never holds more than twice
 * what waits.
 */
#include "config.h"

#include "daemon/io/output.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* An empty buffer above this is given back: many connections are idle, and few had a large answer lately. */
#define KEPT_BYTES ((size_t)128 << 10)

void tr_output_deinit(struct tr_output *output) {
        tr_writer_deinit(&output->writer);
        output->sent = 0;
}

static void output_drop_sent(struct tr_output *output) {
        struct tr_writer *writer = &output->writer;
        if (output->sent == writer->len) {
                output->sent = 0;
                if (writer->cap > KEPT_BYTES)
                        tr_writer_deinit(writer);
                else
                        tr_writer_reset(writer);
        } else if (output->sent > writer->len / 2) {
                memmove(writer->data, writer->data + output->sent, writer->len - output->sent);
                writer->len -= output->sent;
                output->sent = 0;
        }
}

void tr_output_break(struct tr_output *output) {
        output->broken = true;
        output->blocked = false;
        output->sent = output->writer.len;
        output_drop_sent(output);
}

int tr_output_end(struct tr_output *output, size_t begin) {
        struct tr_writer *writer = &output->writer;
        if (output->broken) {
                writer->error = 0;
                tr_output_break(output);
                return 0;
        }
        if (tr_writer_error(writer)) {
                writer->len = begin;
                writer->error = 0;
                return -ENOMEM;
        }
        if (tr_output_waiting(output) > output->max_bytes) {
                tr_output_break(output);
                return -ENOBUFS;
        }
        return 0;
}

enum tr_output_state tr_output_send(struct tr_output *output, int fd) {
        while (!output->broken && tr_output_waiting(output)) {
                ssize_t sent = send(fd, output->writer.data + output->sent, tr_output_waiting(output),
                                    MSG_DONTWAIT | MSG_NOSIGNAL);
                if (sent >= 0) {
                        output->sent += (size_t)sent;
                        output->sent_total += (uint64_t)sent;
                        output_drop_sent(output);
                } else if (errno == EAGAIN) {
                        output->blocked = true;
                        return TR_OUTPUT_BLOCKED;
                } else if (errno != EINTR) {
                        /* EPIPE, ECONNRESET: the peer has gone. ENOBUFS, ENOMEM: the kernel has no room for a part of a
                         * stream that cannot be left out. */
                        tr_output_break(output);
                }
        }
        output->blocked = false;
        return output->broken ? TR_OUTPUT_BROKEN : TR_OUTPUT_EMPTY;
}
