/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_PROTO_FRAME_H
#define TR_PROTO_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"

/*
 * The frame scanner: finds where a MessagePack-RPC frame ends, looking at every
 * byte once, and judges all that can be judged without knowing who it is for.
 *
 * The three frames are [0, msgid, method, params], [1, msgid, error, result]
 * and [2, method, params]; exact lengths, an id of 0 to 2^32-1 in any integer
 * encoding. The scanner keeps its place between calls, so that a frame that
 * comes in pieces is not looked at again (only a head of a few bytes that was cut
 * in two is). It allocates nothing, and no length that it reads sizes anything.
 * What it answers does not depend on how the bytes were cut into pieces.
 *
 * Verdicts on a frame that is well formed but cannot be accepted (too large,
 * nested too deep, a value that cannot cross) are told as soon as they are
 * certain and the id is known; the scanner then passes over the rest of that
 * frame by counting outstanding values, and the connection goes on behind it.
 */

enum tr_frame_type {
        TR_FRAME_REQUEST = 0,
        TR_FRAME_RESPONSE = 1,
        TR_FRAME_NOTIFICATION = 2,
};

/* Where a part of a frame is: `bytes` at `data`. Points into what was scanned. */
struct tr_span {
        const uint8_t *data;
        size_t bytes;
};

/* A whole frame. Spans point into the data given to the scan that found it. */
struct tr_frame {
        enum tr_frame_type type;
        uint32_t id;            /* request and response */
        struct tr_span method;  /* request and notification: the encoded value, of any type */
        struct tr_span params;  /* request and notification: the encoded value, of any type */
        struct tr_span error;   /* response */
        struct tr_span result;  /* response */
        size_t bytes;           /* of the whole frame, from the data's beginning */
};

enum tr_scan {
        TR_SCAN_MORE = 1,     /* no whole frame yet: call again with more bytes behind the same beginning */
        TR_SCAN_FRAME,        /* *ret_frame is set; the next frame begins frame.bytes further on */
        TR_SCAN_REFUSED,      /* *ret_refusal is set; the frame may not have ended: call again with the same bytes */
        TR_SCAN_SKIPPED,      /* the end of a refused frame: drop ret_frame->bytes and go on */
        TR_SCAN_BAD,          /* no frame: nothing behind it can be trusted; *ret_refusal says whom to answer */
};

/* Why a frame is refused. */
enum tr_refusal_reason {
        TR_REFUSAL_NONE,        /* TR_SCAN_BAD */
        TR_REFUSAL_TOO_LARGE,   /* more than frame_max, at once where a head shows it */
        TR_REFUSAL_TOO_DEEP,    /* beyond the levels allowed (an argument is level 1) */
        TR_REFUSAL_BIG_INTEGER, /* an unsigned integer above 2^63-1 */
        TR_REFUSAL_EXT_TYPE,    /* an extension type that is not the protocol's: ext_type */
        TR_REFUSAL_EXT_PAYLOAD, /* a known extension type with a payload that is not its own: ext_type */
        TR_REFUSAL_NIL_KEY,     /* a map with a nil key */
        TR_REFUSAL_KEY,         /* a map key that is an array, map or extension, or NaN */
};

struct tr_refusal {
        enum tr_refusal_reason reason;
        enum tr_frame_type type;
        bool has_id;   /* request and response; TR_SCAN_BAD: a request's that nobody has answered */
        uint32_t id;
        int ext_type;
        size_t offset; /* of the offending value, from the frame's beginning */
};

/* One container that is not finished. */
struct tr_scan_level {
        uint32_t left; /* values still to come, a map's keys counted: before a key it is even */
        bool is_map;
};

enum tr_scan_state {
        TR_SCAN_IN_HEAD,  /* before the method or the error */
        TR_SCAN_IN_PARTS, /* in the method or params, the error or result */
        TR_SCAN_IN_SKIP,  /* a refused frame is being passed over */
};

/*
 * The state between two calls, for one direction of one connection. Set by
 * tr_scanner_init(); after TR_SCAN_FRAME and TR_SCAN_SKIPPED it is ready for
 * the next frame. One thread at a time.
 */
struct tr_scanner {
        size_t frame_max;
        uint32_t nesting_max;
        size_t at;                /* bytes of what is given that were looked at */
        enum tr_scan_state state;
        struct tr_frame frame;    /* type and id */
        struct tr_refusal refusal;

        /* The parts: those two values of a frame that may be anything. */
        unsigned part;            /* the one that is looked at: 0 or 1 */
        size_t part_at[2];        /* where each begins */
        uint32_t level;           /* the innermost container that is open */
        uint32_t levels_max;      /* of this type of frame */
        /* Level 0 is the frame itself and has only the present part left. */
        struct tr_scan_level levels[TR_NESTING_MAX + TR_FRAME_WRAPPING];

        /* Passing over. */
        uint64_t skip_values;     /* values that did not begin yet */
        uint64_t skip_bytes;      /* bytes of the present string, extension or scalar still to come */
        uint32_t skip_length;     /* the present value's length as far as it came, */
        unsigned skip_width;      /* bytes of it still to come, */
        uint8_t skip_first;       /* and the value's first byte */
};

/* Frame limits are taken as within these bounds: a head must fit, and counts are kept in 32 bits. */
#define TR_FRAME_MAX_LOW 32
#define TR_FRAME_MAX_HIGH UINT32_MAX

void tr_scanner_init(struct tr_scanner *scanner, size_t frame_max);

/* Fewer levels than TR_NESTING_MAX, which is what it is without this. From the next frame's head on. */
void tr_scanner_set_nesting(struct tr_scanner *scanner, uint32_t levels);

/*
 * Looks at the frame that begins at data. While it answers TR_SCAN_MORE the caller keeps the bytes and calls
 * again with the same beginning and more behind it, except while a frame is being skipped: then whatever
 * was given has been consumed (tr_scanner_consumed), and only new bytes are given.
 *
 * TR_SCAN_REFUSED comes once per frame, and the next call, with the same beginning, goes on with that frame. With it
 * *ret_frame has what was read so far, for whoever says what was refused and where: type and id, the method where
 * it was whole, and params from its beginning to the end of the bytes given (empty where it did not begin).
 */
__attribute__((warn_unused_result)) enum tr_scan tr_scan(struct tr_scanner *scanner, const uint8_t *data, size_t bytes,
                                                         struct tr_frame *ret_frame, struct tr_refusal *ret_refusal);

/*
 * After TR_SCAN_MORE: how many bytes at the beginning of the data need not be kept: 0, or, while a refused
 * frame is being skipped, all of them.
 */
size_t tr_scanner_consumed(const struct tr_scanner *scanner, size_t bytes);

/*
 * The place of a value, for people: writes for instance "args[2].items[3]" for the value that begins `offset`
 * bytes into the params of a frame, and for a key the place of its map. An array among the params is `args`, another
 * value is params[1] and so on. Needs the frame's bytes up to the offset; truncates to size, which is at least 1.
 */
void tr_frame_path(const uint8_t *params, size_t bytes, size_t offset, char *ret_path, size_t size);

#endif
