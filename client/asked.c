/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was asked of this connection, and answering it.
 *
 * One of these is the program's from the callback that brought it until it is answered, which is also when it is freed;
 * those that it never answers are freed with the connection. So the program may answer at any time, also when nobody
 * waits any more because the connection that it came through is gone.
 */
#include "client/asked.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "client/params.h"
#include "client/request.h"
#include "proto/code.h"
#include "proto/frame.h"

struct troupe_asked *tr_asked_new(struct troupe *troupe, uint32_t id) {
        struct troupe_asked *asked = calloc(1, sizeof(*asked));

        if (!asked)
                return NULL;
        asked->troupe = troupe;
        asked->id = id;
        asked->is_waited_for = true;
        asked->next = troupe->asked;
        if (asked->next)
                asked->next->prev = asked;
        troupe->asked = asked;
        return asked;
}

static void asked_free(struct troupe_asked *asked) {
        if (asked->prev)
                asked->prev->next = asked->next;
        else
                asked->troupe->asked = asked->next;
        if (asked->next)
                asked->next->prev = asked->prev;
        free(asked);
}

struct troupe_asked *tr_asked_find(const struct troupe *troupe, uint32_t id) {
        struct troupe_asked *asked = troupe->asked;

        while (asked && !(asked->is_waited_for && asked->id == id))
                asked = asked->next;
        return asked;
}

void tr_asked_lose_all(struct troupe *troupe) {
        for (struct troupe_asked *asked = troupe->asked; asked; asked = asked->next)
                asked->is_waited_for = false;
}

void tr_asked_free_all(struct troupe *troupe) {
        while (troupe->asked)
                asked_free(troupe->asked);
}

static size_t begin_response(struct tr_writer *out, uint32_t id) {
        size_t start = out->len;

        tr_write_array(out, 4);
        tr_write_int(out, TR_FRAME_RESPONSE);
        tr_write_int(out, id);
        return start;
}

/* Takes it back where it failed. */
static int end_response(struct troupe *troupe, size_t start, int r) {
        struct tr_writer *out = &troupe->output.bytes;

        if (!r)
                r = tr_writer_error(out);
        if (r) {
                out->len = start;
                out->error = 0;
                return r;
        }
        tr_request_flush_much(troupe);
        return 0;
}

int tr_asked_refuse(struct troupe *troupe, uint32_t id, const char *error) {
        struct tr_writer *out = &troupe->output.bytes;
        size_t start = begin_response(out, id);

        tr_write_text(out, error);
        tr_write_nil(out);
        return end_response(troupe, start, 0);
}

/* 0, or why it cannot be answered. */
static int check(struct troupe_asked *asked) {
        int r;

        if (!asked)
                return -EINVAL;
        r = tr_connection_check(asked->troupe);
        if (r == -ECHILD || asked->is_waited_for)
                return r;
        asked_free(asked);
        return -ENOTCONN;
}

int troupe_reply(struct troupe_asked *asked, const char *format, ...) {
        struct tr_writer *out;
        size_t start;
        int r = check(asked);

        if (r)
                return r;
        out = &asked->troupe->output.bytes;
        start = begin_response(out, asked->id);
        tr_write_nil(out);
        TR_PARAMS_WITH_ARGS(r, format, tr_params_write_one(out, format, args));
        r = end_response(asked->troupe, start, r);
        if (!r)
                asked_free(asked);
        return r;
}

int troupe_refuse(struct troupe_asked *asked, const char *error, const char *format, ...) {
        struct tr_writer *out;
        size_t start;
        int r = asked && !error ? -EINVAL : check(asked);

        if (r)
                return r;
        out = &asked->troupe->output.bytes;
        start = begin_response(out, asked->id);
        if (format && *format)
                tr_write_array(out, 2);
        tr_write_text(out, error);
        if (format && *format)
                TR_PARAMS_WITH_ARGS(r, format, tr_params_write_one(out, format, args));
        tr_write_nil(out);
        r = end_response(asked->troupe, start, r);
        if (!r)
                asked_free(asked);
        return r;
}
