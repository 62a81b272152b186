/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beginning of a connection.
 *
 * A connection that takes the place of one that broke (TROUPE_RECONNECT) begins by asking for all that the daemon had
 * agreed to before: these requests are written as soon as the old one has ended, so that they stand before everything
 * that the program asks meanwhile. When all of them are answered, the program is told. What was refused is told first,
 * one by one, and is not asked for again.
 */
#include "client/greeting.h"

#include <string.h>

#include "client/dispatch.h"
#include "client/request.h"
#include "proto/limits.h"

/* A member of an answer's map that is a number above 0; else 0. */
static int64_t limit_of(const struct troupe_value *limits, const char *name) {
        struct troupe_value value;
        int64_t limit;

        return troupe_value_get(limits, name, &value) || troupe_value_int(&value, &limit) || limit < 0 ? 0 : limit;
}

static void take_limits(struct troupe *troupe, const struct troupe_value *hello) {
        struct troupe_value limits;
        int64_t requests, frame_bytes;

        if (troupe_value_get(hello, "limits", &limits))
                return;
        requests = limit_of(&limits, "requests");
        if (requests > 0 && requests < UINT32_MAX)
                troupe->daemon_requests_max = requests;
        frame_bytes = limit_of(&limits, "frame");
        if (frame_bytes > TR_FRAME_DEFAULT)
                troupe->scanner.frame_max = frame_bytes;
}

/* One of the requests that it begins with is answered. */
static void answered_one(struct troupe *troupe) {
        troupe->greeting_left--;
        if (troupe->greeting_left || !troupe->is_restoring)
                return;
        troupe->is_restoring = false;
        troupe->tell_restored = true;
}

/* Whether asking again is of no use. */
static bool is_final(const struct troupe_value *error) {
        struct tr_failure failure = { 0 };
        enum tr_code code;
        bool final;

        final = !tr_failure_read(&failure, error->data, error->size) &&
                tr_code_parse(failure.error.code, strlen(failure.error.code), &code) && tr_code_is_callers(code);
        tr_failure_clear(&failure);
        return final;
}

/* A daemon that does not want this connection (it has too many, or speaks another protocol) says so here, and that is
 * what becomes of everything else that was asked of it. */
static void on_greeted(struct troupe *troupe, struct troupe_pending *pending, enum tr_outcome outcome,
                       const struct troupe_value *value) {
        if (outcome == TR_OUTCOME_REFUSED)
                tr_connection_end(troupe, value, is_final(value));
        if (outcome != TR_OUTCOME_ANSWERED)
                return;
        take_limits(troupe, value);
        tr_connection_is_good(troupe);
        answered_one(troupe);
}

static int write_hello(struct troupe *troupe) {
        struct tr_request request;
        int r = tr_request_begin_own(&request, troupe, "hello");

        if (!r) {
                tr_write_array(request.out, 1);
                tr_write_map(request.out, 3);
                tr_write_text(request.out, "protocol");
                tr_write_int(request.out, TR_PROTOCOL_VERSION);
                tr_write_text(request.out, "errors");
                tr_write_text(request.out, "map");
                tr_write_text(request.out, "values");
                tr_write_text(request.out, "typed");
        }
        r = tr_request_post(&request, r, NULL, NULL, NULL);
        if (!r)
                request.pending->hook = on_greeted;
        return r;
}

static void on_restored(struct troupe *troupe, struct troupe_pending *pending, enum tr_outcome outcome,
                        const struct troupe_value *value) {
        tr_standing_answered_again(troupe, pending, outcome, value);
        if (outcome != TR_OUTCOME_LOST)
                answered_one(troupe);
}

static int write_standing(struct troupe *troupe, struct tr_standing *standing) {
        struct tr_request request;
        int r = tr_request_begin_own(&request, troupe, tr_standing_method(standing));

        if (!r)
                tr_write_raw(request.out, standing->params, standing->params_bytes);
        r = tr_request_post(&request, r, NULL, NULL, NULL);
        if (r)
                return r;
        request.pending->hook = on_restored;
        tr_standing_bind(standing, request.pending);
        return 0;
}

void tr_greeting_begin(struct troupe *troupe) {
        /* it knows already where it was not told yet that the last one was there */
        if (!troupe->is_restoring && !troupe->tell_restored)
                troupe->tell_lost = true;
        troupe->tell_restored = false;
        troupe->is_restoring = true;
        troupe->is_greeted = false;
        troupe->greeting_left = 0;
        for (struct tr_standing *standing = troupe->standing.first; standing; standing = standing->next)
                standing->is_asked = false;
}

int tr_greeting_write(struct troupe *troupe) {
        int r = 0;

        if (troupe->is_greeted)
                return 0;
        if (!troupe->greeting_left) {
                r = write_hello(troupe);
                troupe->greeting_left += !r;
        }
        for (struct tr_standing *standing = troupe->standing.first; !r && standing; standing = standing->next) {
                if (standing->is_asked || !standing->is_agreed)
                        continue;
                r = write_standing(troupe, standing);
                standing->is_asked = !r;
                troupe->greeting_left += !r;
        }
        troupe->is_greeted = !r;
        return r;
}

bool tr_greeting_has_news(const struct troupe *troupe) {
        return troupe->tell_lost || troupe->tell_restored || tr_standing_has_refused(&troupe->standing);
}

static void tell(struct troupe *troupe, enum troupe_link link, const struct tr_standing *standing) {
        if (!troupe->link_callback || troupe->freed)
                return;
        tr_dispatch_enter(troupe);
        troupe->link_callback(troupe, link, standing ? tr_standing_method(standing) : NULL,
                              standing ? standing->name : NULL, troupe->link_userdata);
        (void)tr_dispatch_leave(troupe);
}

void tr_greeting_tell(struct troupe *troupe) {
        struct tr_standing *standing;

        if (troupe->tell_lost) {
                troupe->tell_lost = false;
                tell(troupe, TROUPE_LINK_LOST, NULL);
        }
        while ((standing = tr_standing_take_refused(&troupe->standing))) {
                tr_failure_clear(&troupe->failure);
                troupe->failure = standing->refusal;
                standing->refusal = (struct tr_failure){ 0 };
                tell(troupe, TROUPE_LINK_REFUSED, standing);
                tr_failure_clear(&troupe->failure);
                tr_standing_free(standing);
        }
        if (troupe->tell_restored) {
                troupe->tell_restored = false;
                tell(troupe, TROUPE_LINK_RESTORED, NULL);
        }
}
