/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON Pointers for people and programs to read. They are written from the outside in, into a buffer that has a bound,
 * because keys may be as long as whoever sent them likes.
 */
#include "daemon/contract/pointer.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/utf8.h"

static const char cut[] = "...";

/* Room for what is longer by the escapes of its last character, and for what says that it was cut. */
struct text {
        char data[TR_POINTER_MAX + 8];
        size_t len;
        bool is_full;
};

/* How many bytes the character is that text begins with, and whether it can be shown as it is. */
static size_t next_character(const char *text, size_t len, bool *ret_shown) {
        size_t bytes = tr_utf8_character(text, len);

        *ret_shown = bytes > 0 && !tr_utf8_is_control(text, bytes);
        return bytes > 0 ? bytes : 1;
}

size_t tr_pointer_show(char *buffer, size_t size, const char *text, size_t len) {
        size_t at = 0, written = 0;

        while (at < len) {
                bool shown;
                size_t bytes = next_character(text + at, len - at, &shown);
                size_t room = shown ? bytes : 1;

                if (written + room >= size)
                        break;
                memcpy(buffer + written, shown ? text + at : "?", room);
                written += room;
                at += bytes;
        }
        buffer[written] = '\0';
        return written;
}

static void add(struct text *text, const char *data, size_t len) {
        if (text->is_full)
                return;
        if (text->len + len > TR_POINTER_MAX - strlen(cut)) {
                data = cut;
                len = strlen(cut);
                text->is_full = true;
        }
        memcpy(text->data + text->len, data, len);
        text->len += len;
}

static void add_key(struct text *text, const char *key, size_t len) {
        for (size_t at = 0; at < len && !text->is_full;) {
                bool shown;
                size_t bytes = next_character(key + at, len - at, &shown);

                if (!shown)
                        add(text, "?", 1);
                else if (key[at] == '~')
                        add(text, "~0", 2);
                else if (key[at] == '/')
                        add(text, "~1", 2);
                else
                        add(text, key + at, bytes);
                at += bytes;
        }
}

static void add_step(struct text *text, const struct tr_step *step) {
        char number[24];

        add(text, "/", 1);
        if (step->key)
                add_key(text, step->key, step->key_len);
        else
                add(text, number, (size_t)snprintf(number, sizeof(number), "%zu", step->index));
}

/* The step that is `level` steps from the document; there are not many, since nesting is bounded. */
static const struct tr_step *step_at(const struct tr_step *step, size_t depth, size_t level) {
        for (; depth > level; depth--)
                step = step->parent;
        return step;
}

char *tr_pointer_text(const struct tr_step *step) {
        struct text text = { .len = 0 };
        size_t depth = 0;

        for (const struct tr_step *at = step; at; at = at->parent)
                depth++;
        for (size_t level = 1; level <= depth && !text.is_full; level++)
                add_step(&text, step_at(step, depth, level));
        return strndup(text.data, text.len);
}
