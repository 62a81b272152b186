/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving. Bytes are read into one large buffer that all connections share, and are handled there; a connection has
 * memory of its own only for a frame that has not come to its end. That memory grows with what has really come, never
 * by what a header promises.
 */
#include "config.h"

#include "daemon/io/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

void tr_input_init(struct tr_input *input, size_t frame_max) {
        *input = (struct tr_input){ 0 };
        tr_scanner_init(&input->scanner, frame_max);
}

void tr_input_deinit(struct tr_input *input) {
        free(input->data);
        input->data = NULL;
        input->bytes = 0;
        input->room = 0;
}

static int input_make_room(struct tr_input *input, size_t room) {
        if (room <= input->room)
                return 0;
        uint8_t *data = realloc(input->data, room);
        if (!data)
                return tr_error_origin(-ENOMEM);
        input->data = data;
        input->room = room;
        return 0;
}

static ssize_t receive(int fd, int flags, uint8_t *to, size_t bytes) {
        ssize_t received;
        do
                received = recv(fd, to, bytes, MSG_DONTWAIT | flags);
        while (received < 0 && errno == EINTR);
        return received < 0 ? -errno : received;
}

ssize_t tr_input_read(struct tr_input *input, int fd, bool peek, size_t most, struct tr_piece *piece,
                      uint8_t **ret_data, size_t *ret_bytes) {
        const int flags = peek ? MSG_PEEK : 0;
        ssize_t received;
        uint8_t *data;
        if (input->bytes <= TR_PIECE_FRONT_BYTES) {
                data = piece->data;
                if (input->bytes)
                        memcpy(data, input->data, input->bytes);
                received = receive(fd, flags, data + input->bytes, most);
        } else {
                /* Doubled, so that a large frame is moved a few times only. */
                if (input->room - input->bytes < TR_PIECE_BYTES / 4) {
                        int r = input_make_room(input, 2 * input->bytes + TR_PIECE_BYTES);
                        if (r)
                                return r;
                }
                size_t room = input->room - input->bytes;
                data = input->data;
                received = receive(fd, flags, data + input->bytes, room < most ? room : most);
        }
        if (received < 0)
                return received;
        input->peeked = peek ? (size_t)received : 0;
        *ret_data = data;
        *ret_bytes = input->bytes + (size_t)received;
        return received;
}

/* Whether a rest is in the input's own buffer, and not in the shared piece. */
static bool input_owns(const struct tr_input *input, const uint8_t *rest) {
        uintptr_t at = (uintptr_t)rest, begin = (uintptr_t)input->data;
        return begin && at >= begin && at <= begin + input->room;
}

int tr_input_keep(struct tr_input *input, const uint8_t *rest, size_t bytes) {
        bool own = input_owns(input, rest);
        if (bytes == 0) {
                tr_input_deinit(input);
        } else if (own && bytes > TR_PIECE_FRONT_BYTES) {
                if (rest != input->data)
                        memmove(input->data, rest, bytes);
                input->bytes = bytes;
        } else if (own) {
                uint8_t *small = malloc(bytes);
                if (!small)
                        return tr_error_origin(-ENOMEM);
                memcpy(small, rest, bytes);
                free(input->data);
                input->data = small;
                input->bytes = bytes;
                input->room = bytes;
        } else {
                int r = input_make_room(input, bytes);
                if (r)
                        return tr_error_fold(r);
                memcpy(input->data, rest, bytes);
                input->bytes = bytes;
        }
        return 0;
}

int tr_input_take_peeked(struct tr_input *input, int fd, struct tr_piece *piece) {
        while (input->peeked > 0) {
                ssize_t taken = receive(fd, 0, piece->data, input->peeked);
                if (taken <= 0)
                        return tr_error_origin(taken < 0 ? (int)taken : -EIO);
                input->peeked -= (size_t)taken;
        }
        return 0;
}
