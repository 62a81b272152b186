/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_INPUT_H
#define TR_IO_INPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/error.h"
#include "proto/frame.h"

/* How much is read at once: one piece per connection and round of the loop. */
#define TR_PIECE_BYTES ((size_t)256 << 10)
/* What was kept of an unfinished frame is put in front of the next piece while it is at most so much; a larger one
 * has a buffer of its own, to which is read, so that a frame that comes in small pieces is not copied again and
 * again. */
#define TR_PIECE_FRONT_BYTES ((size_t)16 << 10)

/* The loop's one buffer that pieces are read into. */
struct tr_piece {
        uint8_t data[TR_PIECE_FRONT_BYTES + TR_PIECE_BYTES];
};

/* What a connection has received and not handled. Loop thread. */
struct tr_input {
        struct tr_scanner scanner;
        uint8_t *data;
        size_t bytes;
        size_t room;
        size_t peeked; /* of what was read last, this much is still in the socket */
};

void tr_input_init(struct tr_input *input, size_t frame_max);
void tr_input_deinit(struct tr_input *input);

/*
 * Reads once. *ret_data is what was kept and what came, in the piece or in the input's own buffer, until
 * tr_input_keep(). Answers what recv() answers; negative errno on failure, and nothing has changed then.
 * At most `most` bytes are read, and no more than TR_PIECE_BYTES.
 * `peek` leaves what came in the socket; tr_input_take_peeked() has to follow before it is read again.
 */
TR_MUST_CHECK ssize_t tr_input_read(struct tr_input *input, int fd, bool peek, size_t most, struct tr_piece *piece,
                                    uint8_t **ret_data, size_t *ret_bytes);
/* Keeps the rest of what tr_input_read() answered, and nothing else. 0 or -ENOMEM, and it is lost. */
TR_MUST_CHECK int tr_input_keep(struct tr_input *input, const uint8_t *rest, size_t bytes);
/* Takes out of the socket what was peeked at and is handled, over what is in the piece. 0 or a negative errno. */
TR_MUST_CHECK int tr_input_take_peeked(struct tr_input *input, int fd, struct tr_piece *piece);

#endif
