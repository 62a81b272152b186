/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values without a plain form. Where in them that is found as it is in a request (tr_frame_path), which they are wrapped
 * in for that: this runs for what was refused only.
 */
#include "config.h"

#include "daemon/io/no_plain.h"

#include <string.h>

#include "proto/frame.h"

/* A longer place is cut. */
#define PLACE_BYTES 1024

static void find_place(char ret_place[static PLACE_BYTES], const void *values, size_t bytes, uint32_t count, size_t offset) {
        struct tr_writer params = TR_WRITER_INIT;
        ret_place[0] = '\0';
        tr_write_array(&params, 1);
        tr_write_array(&params, count);
        size_t head = params.len;
        tr_write_raw(&params, values, bytes);
        if (!tr_writer_error(&params))
                tr_frame_path(params.data, params.len, head + offset, ret_place, PLACE_BYTES);
        tr_writer_deinit(&params);
}

static struct tr_failure *failure_at(const char *place) {
        struct tr_failure *failure =
                tr_failure_new(TR_CODE_NOT_SENDABLE,
                               "who takes values plain cannot be given a map with a key twice: as a text `%s` is there before",
                               place);
        tr_failure_add_text(failure, "path", place, strlen(place));
        return failure;
}

struct tr_failure *tr_no_plain_args(const void *args, size_t bytes, uint32_t count, size_t offset) {
        char place[PLACE_BYTES];
        find_place(place, args, bytes, count, offset);
        return failure_at(place);
}

struct tr_failure *tr_no_plain_answer(const void *value, size_t bytes, size_t offset) {
        static const char wrapped[] = "args[1]";
        char place[PLACE_BYTES];
        find_place(place, value, bytes, 1, offset);
        const char *at = strncmp(place, wrapped, strlen(wrapped)) == 0 ? place + strlen(wrapped) : place;
        return failure_at(*at == '.' ? at + 1 : at);
}
