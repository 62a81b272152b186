/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES (256u << 10)
/* Sixteen times what a frame is by default: a bound for what is kept, not a limit that anybody should meet. */
#define LINE_MAX_BYTES (256u << 20)

static int make_room(struct tr_lines *lines) {
        size_t held = lines->end - lines->begin;
        size_t capacity = lines->capacity;
        char *data;

        if (lines->begin) {
                memmove(lines->data, lines->data + lines->begin, held);
                lines->searched -= lines->begin;
                lines->begin = 0;
                lines->end = held;
        }
        if (capacity - held >= READ_BYTES)
                return 0;
        if (held > LINE_MAX_BYTES)
                return -EFBIG;
        capacity = capacity ? capacity * 2 : 2 * READ_BYTES;
        data = realloc(lines->data, capacity);
        if (!data)
                return -ENOMEM;
        lines->data = data;
        lines->capacity = capacity;
        return 0;
}

int tr_lines_read(struct tr_lines *lines, int fd) {
        ssize_t n;
        int r = make_room(lines);

        if (r)
                return r;
        n = read(fd, lines->data + lines->end, lines->capacity - lines->end);
        if (n < 0)
                return errno == EINTR || errno == EAGAIN ? 0 : -errno;
        lines->end += n;
        lines->is_over = !n;
        return 0;
}

bool tr_lines_peek(struct tr_lines *lines, const char **ret_line, size_t *ret_len) {
        const char *newline = NULL;

        if (lines->end > lines->searched)
                newline = memchr(lines->data + lines->searched, '\n', lines->end - lines->searched);
        if (!newline) {
                lines->searched = lines->end;
                if (!lines->is_over || lines->begin == lines->end)
                        return false;
                newline = lines->data + lines->end;
        } else {
                lines->searched = newline - lines->data;
        }
        *ret_line = lines->data + lines->begin;
        *ret_len = newline - *ret_line;
        return true;
}

void tr_lines_drop(struct tr_lines *lines, size_t len) {
        size_t before = lines->begin;

        lines->begin += len;
        if (lines->begin < lines->end)
                lines->begin++;
        lines->dropped += lines->begin - before;
        lines->searched = lines->begin;
}

void tr_lines_deinit(struct tr_lines *lines) {
        free(lines->data);
        *lines = (struct tr_lines){ 0 };
}
