/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command/window.h"

#include <string.h>

static uint64_t at_least_one(uint64_t number) {
        return number ? number : 1;
}

void tr_window_init(struct tr_window *window, uint64_t messages, uint64_t bytes) {
        *window = (struct tr_window){ .limit = { at_least_one(messages / 2), at_least_one(bytes / 2) } };
}

bool tr_window_is_large(const struct tr_window *window, uint64_t bytes) {
        return bytes > window->limit.bytes || bytes > TR_WINDOW_LARGE_BYTES;
}

bool tr_window_admits(const struct tr_window *window, uint64_t bytes) {
        if (!window->waiting.messages)
                return true;
        return window->waiting.messages < window->limit.messages && bytes <= window->limit.bytes &&
               window->waiting.bytes <= window->limit.bytes - bytes;
}

static void add(struct tr_amount *amount, uint64_t messages, uint64_t bytes) {
        amount->messages += messages;
        amount->bytes += bytes;
}

void tr_window_sent(struct tr_window *window, uint64_t bytes) {
        add(&window->waiting, 1, bytes);
        add(&window->unmarked, 1, bytes);
}

bool tr_window_wants_mark(const struct tr_window *window, bool is_blocked) {
        if (!window->unmarked.messages || window->marks_count == TR_WINDOW_MARKS_MAX)
                return false;
        return is_blocked || window->unmarked.messages >= at_least_one(window->limit.messages / 2) ||
               window->unmarked.bytes >= at_least_one(window->limit.bytes / 2);
}

void tr_window_marked(struct tr_window *window) {
        window->marks[window->marks_count++] = window->unmarked;
        window->unmarked = (struct tr_amount){ 0 };
}

void tr_window_handled(struct tr_window *window) {
        if (!window->marks_count)
                return;
        window->waiting.messages -= window->marks[0].messages;
        window->waiting.bytes -= window->marks[0].bytes;
        memmove(window->marks, window->marks + 1, --window->marks_count * sizeof(window->marks[0]));
}
