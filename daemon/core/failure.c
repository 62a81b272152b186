/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures. One is made where something goes wrong and handed to everybody who
 * is owed an answer because of it: an actor's fault to each of its askers, to
 * whoever waits for its end, and to who asks about it later. Hence the count.
 */
#include "daemon/core/failure.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Handed out where there is no memory for a failure of its own; its count is never touched. */
static char no_memory_message[] = "out of memory";
static struct tr_failure no_memory = {
        .refs = 1,
        .code = TR_CODE_NO_MEMORY,
        .ran = TR_RAN_NO,
        .message = no_memory_message,
};

struct tr_failure *tr_failure_new(enum tr_code code, const char *format, ...) {
        struct tr_failure *failure = calloc(1, sizeof(*failure));
        if (!failure)
                return &no_memory;

        va_list arguments;
        va_start(arguments, format);
        int r = vasprintf(&failure->message, format, arguments);
        va_end(arguments);
        if (r < 0) {
                free(failure);
                return &no_memory;
        }

        atomic_init(&failure->refs, 1);
        failure->code = code;
        failure->ran = tr_code_ran(code);
        return failure;
}

struct tr_failure *tr_failure_ref(struct tr_failure *failure) {
        /* relaxed: who copies a reference has one */
        if (failure && failure != &no_memory)
                atomic_fetch_add_explicit(&failure->refs, 1, memory_order_relaxed);
        return failure;
}

void tr_failure_set_ran(struct tr_failure *failure, enum tr_ran ran) {
        if (failure != &no_memory)
                failure->ran = ran;
}

void tr_failure_unref(struct tr_failure *failure) {
        if (!failure || failure == &no_memory)
                return;
        /* acq_rel: the last one sees all that the others did with it */
        if (atomic_fetch_sub_explicit(&failure->refs, 1, memory_order_acq_rel) != 1)
                return;
        tr_writer_deinit(&failure->extra);
        free(failure->message);
        free(failure);
}

/* Appends a pair whole or not at all. */
static void failure_add(struct tr_failure *failure, const char *key, void (*write)(struct tr_writer *, const void *, size_t),
                        const void *data, size_t len) {
        if (failure == &no_memory)
                return;
        size_t before = failure->extra.len;
        tr_write_text(&failure->extra, key);
        write(&failure->extra, data, len);
        if (tr_writer_error(&failure->extra)) {
                failure->extra.len = before;
                failure->extra.error = 0;
                return;
        }
        failure->extras++;
}

static void write_text(struct tr_writer *writer, const void *data, size_t len) {
        tr_write_string(writer, data, len);
}

void tr_failure_add_text(struct tr_failure *failure, const char *key, const char *text, size_t len) {
        failure_add(failure, key, write_text, text, len);
}

void tr_failure_add_raw(struct tr_failure *failure, const char *key, const void *value, size_t bytes) {
        failure_add(failure, key, tr_write_raw, value, bytes);
}

bool tr_failure_find_text(const struct tr_failure *failure, const char *key, const char **ret_text, size_t *ret_len) {
        struct tr_reader reader = tr_reader(failure->extra.data, failure->extra.len);
        struct tr_token name, value;

        for (uint32_t i = 0; i < failure->extras; i++) {
                struct tr_reader at;
                if (tr_read(&reader, &name) != 0)
                        return false;
                at = reader;
                if (tr_token_equals(&name, key) && tr_read(&at, &value) == 0 && tr_token_is_text(&value)) {
                        *ret_text = (const char *)value.data;
                        *ret_len = value.len;
                        return true;
                }
                if (tr_read_skip(&reader) != 0)
                        return false;
        }
        return false;
}

void tr_failure_write_map(const struct tr_failure *failure, enum tr_ran ran, struct tr_writer *writer) {
        tr_write_map(writer, 3 + failure->extras);
        tr_write_text(writer, "code");
        tr_write_text(writer, tr_code_text(failure->code));
        tr_write_text(writer, "message");
        tr_write_string(writer, failure->message, strlen(failure->message));
        tr_write_text(writer, "ran");
        tr_write_text(writer, tr_ran_text(ran));
        tr_write_raw(writer, failure->extra.data, failure->extra.len);
}
