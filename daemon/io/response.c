/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Responses: [1, id, error, result].
 */
#include "config.h"

#include "daemon/io/response.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "proto/code.h"

static void response_begin(struct tr_writer *writer, uint32_t id) {
        tr_write_array(writer, 4);
        tr_write_int(writer, 1);
        tr_write_uint(writer, id);
}

void tr_response_write_result(struct tr_writer *writer, uint32_t id, const void *value, size_t bytes) {
        response_begin(writer, id);
        tr_write_nil(writer);
        tr_write_raw(writer, value, bytes);
}

void tr_response_write_handle_result(struct tr_writer *writer, uint32_t id, enum tr_form values,
                                     const struct tr_handle *handle) {
        response_begin(writer, id);
        tr_write_nil(writer);
        tr_response_write_handle(writer, values, handle);
}

/* Copies one pair plain. 0, or TR_PLAIN_SAME_KEY and it is passed over: its value has no plain form. */
static int write_plain_pair(struct tr_writer *writer, struct tr_reader *reader) {
        size_t before = writer->len;
        struct tr_reader value;
        int r = tr_write_plain(writer, reader);
        if (r)
                return r;
        value = *reader;
        r = tr_write_plain(writer, &value);
        if (r == TR_PLAIN_SAME_KEY) {
                writer->len = before;
                return tr_read_skip(reader) ? TR_READ_INVALID : r;
        }
        *reader = value;
        return r;
}

/* What a failure adds may hold typed values (a handler may raise a handle): a connection that wants none gets them
 * plain, and goes without one that cannot be. */
static void write_plain_map(struct tr_writer *writer, const struct tr_failure *failure, enum tr_ran ran) {
        struct tr_writer typed = TR_WRITER_INIT, pairs = TR_WRITER_INIT;
        struct tr_token head = { .count = 0 };
        uint32_t count = 0;
        tr_failure_write_map(failure, ran, &typed);
        struct tr_reader reader = tr_reader(typed.data, typed.len);
        int r = tr_writer_error(&typed) || tr_read(&reader, &head) ? -ENOMEM : 0;
        for (uint32_t i = 0; i < head.count && (r == 0 || r == TR_PLAIN_SAME_KEY); i++) {
                r = write_plain_pair(&pairs, &reader);
                count += r == 0;
        }
        if (r == 0 || r == TR_PLAIN_SAME_KEY) {
                tr_write_map(writer, count);
                tr_write_raw(writer, pairs.data, pairs.len);
        } else {
                writer->error = -ENOMEM;
        }
        tr_writer_deinit(&pairs);
        tr_writer_deinit(&typed);
}

/* The string of the two short forms. */
static void write_text(struct tr_writer *writer, const struct tr_failure *failure, enum tr_ran ran) {
        TR_AUTO_FREE char *text = NULL;
        int len = asprintf(&text, "%s: %s (ran: %s)", tr_code_text(failure->code), failure->message, tr_ran_text(ran));
        if (len < 0) {
                text = NULL;
                writer->error = -ENOMEM;
                return;
        }
        tr_write_string(writer, text, (size_t)len);
}

void tr_response_write_error(struct tr_writer *writer, const struct tr_response_form *form,
                             const struct tr_failure *failure, enum tr_ran ran) {
        switch (form->errors) {
        case TR_ERRORS_MAP:
                if (form->values == TR_FORM_PLAIN)
                        write_plain_map(writer, failure, ran);
                else
                        tr_failure_write_map(failure, ran, writer);
                break;
        case TR_ERRORS_PAIR:
                tr_write_array(writer, 2);
                tr_write_int(writer, tr_code_is_callers(failure->code) ? 1 : 0);
                write_text(writer, failure, ran);
                break;
        case TR_ERRORS_TEXT:
                write_text(writer, failure, ran);
                break;
        }
}

void tr_response_write_failure(struct tr_writer *writer, uint32_t id, const struct tr_response_form *form,
                               const struct tr_failure *failure, enum tr_ran ran) {
        response_begin(writer, id);
        tr_response_write_error(writer, form, failure, ran);
        tr_write_nil(writer);
}

void tr_response_write_handle(struct tr_writer *writer, enum tr_form values, const struct tr_handle *handle) {
        char text[TR_HANDLE_TEXT_MAX + 1];
        if (values == TR_FORM_PLAIN)
                tr_write_str(writer, text, tr_handle_format(handle, text));
        else
                tr_write_handle(writer, handle);
}
