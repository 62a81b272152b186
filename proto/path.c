/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where in a request a value is, in the words of whoever wrote it: "args[2].items[3]".
 *
 * This runs only for values that were refused, over bytes that the scanner has
 * passed already, once from their beginning, so that a sender gains nothing by
 * hiding what is refused deep inside a large frame.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "proto/frame.h"
#include "proto/value.h"

/* A key that is longer is cut: a place is there to be read. */
#define KEY_SHOWN 40

/* A container on the way to the value. */
struct step {
        bool is_map;
        uint32_t left;  /* values still to come, a map's keys counted */
        uint32_t index; /* array: of the next element, from 1 */
        bool has_key;   /* map: the value of the present pair is next, or was taken last */
        struct tr_token key;
};

struct way {
        unsigned depth; /* steps */
        struct step steps[TR_NESTING_MAX + TR_FRAME_WRAPPING];
};

struct text {
        char *at;
        size_t left;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...) {
        va_list args;
        int len;

        va_start(args, format);
        len = vsnprintf(text->at, text->left, format, args);
        va_end(args);
        if (len < 0)
                return;
        if ((size_t)len >= text->left)
                len = (int)text->left - 1;
        text->at += len;
        text->left -= (size_t)len;
}

/* False where there is no room: the scanner lets no such value through. */
static bool enter(struct way *way, bool is_map, uint64_t left) {
        if (way->depth == sizeof(way->steps) / sizeof(way->steps[0]) || left > UINT32_MAX)
                return false;
        way->steps[way->depth++] = (struct step){ .is_map = is_map, .left = (uint32_t)left };
        return true;
}

static void leave_finished(struct way *way) {
        while (way->depth > 1 && way->steps[way->depth - 1].left == 0)
                way->depth--;
}

/* Takes the value that begins here as the innermost container's next. */
static void pass(struct way *way, const struct tr_token *token) {
        struct step *step;

        if (way->depth == 0)
                return;
        step = &way->steps[way->depth - 1];
        if (!step->is_map) {
                step->index++;
        } else if (step->left % 2 == 0) {
                step->has_key = true;
                step->key = *token;
        }
        step->left--;
}

/* Goes on from the value just passed; false where the way ends. */
static bool descend(struct way *way, struct tr_reader *reader, const struct tr_token *token, const uint8_t *target) {
        const char *name;
        size_t name_len;
        uint32_t pairs;

        switch (token->type) {
        case TR_ARRAY:
                return enter(way, false, token->count);
        case TR_MAP:
                return enter(way, true, 2 * (uint64_t)token->count);
        case TR_EXT:
                if (token->ext != TR_EXT_INSTANCE || target >= token->data + token->len)
                        return true;
                return tr_instance_decode(token->data, token->len, &name, &name_len, reader, &pairs) &&
                       enter(way, true, 2 * (uint64_t)pairs);
        default:
                return true;
        }
}

static void find(struct way *way, const uint8_t *params, size_t bytes, const uint8_t *target) {
        struct tr_reader reader = tr_reader(params, bytes);

        while (reader.at < target) {
                struct tr_token token;

                leave_finished(way);
                if (tr_read(&reader, &token))
                        break;
                pass(way, &token);
                if (!descend(way, &reader, &token, target))
                        break;
        }
        leave_finished(way);
        if (way->depth > 0) {
                struct step *last = &way->steps[way->depth - 1];

                if (last->is_map)
                        last->has_key = last->left % 2 == 1;
                else
                        last->index++;
        }
}

static void add_key(struct text *text, const struct tr_token *key) {
        char shown[KEY_SHOWN + 1];
        uint32_t len = 0;

        switch (key->type) {
        case TR_STR:
        case TR_BIN:
                for (; len < key->len && len < KEY_SHOWN; len++)
                        shown[len] = key->data[len] >= ' ' && key->data[len] < 0x7f ? (char)key->data[len] : '?';
                shown[len] = '\0';
                add(text, ".%s%s", shown, len < key->len ? "..." : "");
                break;
        case TR_INT:
                add(text, "[%" PRId64 "]", key->integer);
                break;
        case TR_FLOAT:
                (void)tr_float_format(key->number, shown);
                add(text, "[%s]", shown);
                break;
        default:
                add(text, "[%s]", key->type == TR_BOOL && key->boolean ? "true" : "false");
        }
}

static void add_step(struct text *text, const struct step *step) {
        if (!step->is_map)
                add(text, "[%" PRIu32 "]", step->index);
        else if (step->has_key)
                add_key(text, &step->key);
}

void tr_frame_path(const uint8_t *params, size_t bytes, size_t offset, char *ret_path, size_t size) {
        struct way way = { .depth = 0 };
        struct text text = { ret_path, size };
        unsigned first = 0;

        find(&way, params, bytes, params + offset);
        if (way.depth > 1 && !way.steps[0].is_map && !way.steps[1].is_map) {
                add(&text, "args");
                first = 1;
        } else {
                add(&text, "params");
        }
        for (unsigned i = first; i < way.depth; i++)
                add_step(&text, &way.steps[i]);
}
