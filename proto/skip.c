/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passing over a refused frame: how many values, and of the present one how many
 * bytes, are still to come. That needs nothing of what was given before, which is
 * why a frame of 4 GiB can be refused and passed over without being kept.
 */
#include "proto/head.h"
#include "proto/walk.h"

void tr_skip_begin(struct tr_scanner *scanner, uint64_t more) {
        scanner->skip_values = more;
        for (uint32_t i = 0; i <= scanner->level; i++)
                scanner->skip_values += scanner->levels[i].left;
        scanner->skip_bytes = 0;
        scanner->skip_width = 0;
}

/* The length of the value that is passed over is known. */
static void skip_known(struct tr_scanner *scanner, uint32_t length) {
        struct tr_head head = tr_heads[scanner->skip_first];

        if (!tr_head_is_container(head)) {
                scanner->skip_bytes = (uint64_t)length + (head.kind == TR_KIND_EXT);
                return;
        }
        /* A sender may promise more than can be counted; nobody will live to see it kept. */
        if (__builtin_add_overflow(scanner->skip_values, tr_head_values(head, length), &scanner->skip_values))
                scanner->skip_values = UINT64_MAX;
}

enum tr_walk tr_skip(struct tr_scanner *scanner, const uint8_t *data, size_t bytes) {
        for (;;) {
                size_t left = bytes - scanner->at;
                struct tr_head head;

                if (scanner->skip_bytes > 0) {
                        size_t passed = scanner->skip_bytes < left ? (size_t)scanner->skip_bytes : left;

                        scanner->at += passed;
                        scanner->skip_bytes -= passed;
                        if (scanner->skip_bytes > 0)
                                return TR_WALK_SHORT;
                        continue;
                }
                if (scanner->skip_width == 0 && scanner->skip_values == 0)
                        return TR_WALK_WHOLE;
                if (left == 0)
                        return TR_WALK_SHORT;
                if (scanner->skip_width > 0) {
                        scanner->skip_length = scanner->skip_length << 8 | data[scanner->at++];
                        if (--scanner->skip_width == 0)
                                skip_known(scanner, scanner->skip_length);
                        continue;
                }

                head = tr_heads[data[scanner->at]];
                if (head.kind == TR_KIND_NEVER)
                        return TR_WALK_BAD;
                scanner->skip_first = data[scanner->at++];
                scanner->skip_values--;
                scanner->skip_length = 0;
                scanner->skip_width = head.width;
                if (head.width == 0)
                        skip_known(scanner, head.fixed);
        }
}
