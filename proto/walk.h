/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_PROTO_WALK_H
#define TR_PROTO_WALK_H

#include "proto/frame.h"

/* What the scanner does with the values of a frame. Internal to proto/. */
enum tr_walk {
        TR_WALK_WHOLE,
        TR_WALK_SHORT,   /* more bytes are needed */
        TR_WALK_BEYOND,  /* more bytes are needed than there can be */
        TR_WALK_REFUSED, /* scanner->refusal has the reason */
        TR_WALK_BAD,     /* no MessagePack */
};

/* What is walked: the bytes that are there, and where they end at the latest. Offsets are from data. */
struct tr_extent {
        const uint8_t *data;
        size_t end;
        size_t end_max;
};

/*
 * Goes on at scanner->at until level `base` has nothing left. Anything but TR_WALK_WHOLE leaves at and level at the
 * value that could not be passed, with all that is outstanding, itself included, in the levels.
 */
enum tr_walk tr_walk(struct tr_scanner *scanner, struct tr_extent extent, uint32_t base);

/* Begins to pass over all that is outstanding, and `more` values behind it. */
void tr_skip_begin(struct tr_scanner *scanner, uint64_t more);
/* Goes on at scanner->at, over all that is given. Never TR_WALK_BEYOND or TR_WALK_REFUSED. */
enum tr_walk tr_skip(struct tr_scanner *scanner, const uint8_t *data, size_t bytes);

#endif
