/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of first bytes, as the MessagePack specification has them.
 */
#include "proto/head.h"

#define SCALAR(kind, payload) { TR_KIND_##kind, 1, 0, payload }
#define SIZED(kind, width) { TR_KIND_##kind, 1 + (width), width, 0 }
/* An extension's type stands behind its length. */
#define FIXEXT(payload) { TR_KIND_EXT, 2, 0, payload }
#define SIZED_EXT(width) { TR_KIND_EXT, 2 + (width), width, 0 }

/* The length that is in the low bits of the first byte itself. */
#define TIMES_16(kind)                                                                                            \
        SCALAR(kind, 0), SCALAR(kind, 1), SCALAR(kind, 2), SCALAR(kind, 3), SCALAR(kind, 4), SCALAR(kind, 5),     \
        SCALAR(kind, 6), SCALAR(kind, 7), SCALAR(kind, 8), SCALAR(kind, 9), SCALAR(kind, 10), SCALAR(kind, 11),   \
        SCALAR(kind, 12), SCALAR(kind, 13), SCALAR(kind, 14), SCALAR(kind, 15)
#define TIMES_16_MORE(kind)                                                                                       \
        SCALAR(kind, 16), SCALAR(kind, 17), SCALAR(kind, 18), SCALAR(kind, 19), SCALAR(kind, 20),                 \
        SCALAR(kind, 21), SCALAR(kind, 22), SCALAR(kind, 23), SCALAR(kind, 24), SCALAR(kind, 25),                 \
        SCALAR(kind, 26), SCALAR(kind, 27), SCALAR(kind, 28), SCALAR(kind, 29), SCALAR(kind, 30), SCALAR(kind, 31)

const struct tr_head tr_heads[256] = {
        [0x00 ... 0x7f] = SCALAR(INT, 0),
        [0x80] = TIMES_16(MAP),
        [0x90] = TIMES_16(ARRAY),
        [0xa0] = TIMES_16(STR),
        [0xb0] = TIMES_16_MORE(STR),
        [0xc0] = SCALAR(NIL, 0),
        [0xc1] = SCALAR(NEVER, 0),
        [0xc2] = SCALAR(BOOL, 0),
        [0xc3] = SCALAR(BOOL, 0),
        [0xc4] = SIZED(BIN, 1),
        [0xc5] = SIZED(BIN, 2),
        [0xc6] = SIZED(BIN, 4),
        [0xc7] = SIZED_EXT(1),
        [0xc8] = SIZED_EXT(2),
        [0xc9] = SIZED_EXT(4),
        [0xca] = SCALAR(FLOAT, 4),
        [0xcb] = SCALAR(FLOAT, 8),
        [0xcc] = SCALAR(INT, 1),
        [0xcd] = SCALAR(INT, 2),
        [0xce] = SCALAR(INT, 4),
        [0xcf] = SCALAR(UINT64, 8),
        [0xd0] = SCALAR(INT, 1),
        [0xd1] = SCALAR(INT, 2),
        [0xd2] = SCALAR(INT, 4),
        [0xd3] = SCALAR(INT, 8),
        [0xd4] = FIXEXT(1),
        [0xd5] = FIXEXT(2),
        [0xd6] = FIXEXT(4),
        [0xd7] = FIXEXT(8),
        [0xd8] = FIXEXT(16),
        [0xd9] = SIZED(STR, 1),
        [0xda] = SIZED(STR, 2),
        [0xdb] = SIZED(STR, 4),
        [0xdc] = SIZED(ARRAY, 2),
        [0xdd] = SIZED(ARRAY, 4),
        [0xde] = SIZED(MAP, 2),
        [0xdf] = SIZED(MAP, 4),
        [0xe0 ... 0xff] = SCALAR(INT, 0),
};
