/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send and ask.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>

#include "client/options.h"
#include "client/params.h"
#include "client/request.h"
#include "client/troupe.h"
#include "proto/value.h"

/* The params that both have: target, handler, args. */
static int write_message(struct tr_writer *out, bool has_options, const char *target, const char *handler,
                         const char *format, va_list args) {
        int r;

        if (!handler)
                return -EINVAL;
        tr_write_array(out, has_options ? 4 : 3);
        r = tr_params_write_target(out, target);
        if (r)
                return r;
        tr_write_text(out, handler);
        return tr_params_write_list(out, format, args);
}

static int write_ask_options(struct tr_writer *out, const struct troupe_ask_options *given) {
        struct troupe_ask_options options;
        struct tr_map map;
        int r;

        if (!given)
                return 0;
        r = tr_options_copy(&options, sizeof(options), TR_SIZE_TO(troupe_ask_options, trace), given);
        if (r)
                return r;
        map = tr_map_begin(out);
        tr_map_text(&map, "trace", options.trace);
        r = tr_map_number(&map, "timeout", options.timeout_ms);
        tr_map_end(&map);
        return r;
}

int troupe_send(struct troupe *troupe, const char *target, const char *handler, const char *format, ...) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "send", TR_REQUEST_WAIT);

        if (!r)
                TR_PARAMS_WITH_ARGS(r, format, write_message(request.out, false, target, handler, format, args));
        return tr_request_call(&request, r, NULL);
}

int troupe_send_async(struct troupe *troupe, const char *target, const char *handler, troupe_callback *callback,
                      void *userdata, struct troupe_pending **ret_pending, const char *format, ...) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "send", TR_REQUEST_POST);

        if (!r)
                TR_PARAMS_WITH_ARGS(r, format, write_message(request.out, false, target, handler, format, args));
        return tr_request_post(&request, r, callback, userdata, ret_pending);
}

int troupe_ask(struct troupe *troupe, const char *target, const char *handler, const struct troupe_ask_options *options,
               struct troupe_value *ret_answer, const char *format, ...) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "ask", TR_REQUEST_WAIT);

        if (!r)
                TR_PARAMS_WITH_ARGS(r, format, write_message(request.out, options, target, handler, format, args));
        if (!r)
                r = write_ask_options(request.out, options);
        return tr_request_call(&request, r, ret_answer);
}

int troupe_ask_async(struct troupe *troupe, const char *target, const char *handler,
                     const struct troupe_ask_options *options, troupe_callback *callback, void *userdata,
                     struct troupe_pending **ret_pending, const char *format, ...) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "ask", TR_REQUEST_POST);

        if (!r)
                TR_PARAMS_WITH_ARGS(r, format, write_message(request.out, options, target, handler, format, args));
        if (!r)
                r = write_ask_options(request.out, options);
        return tr_request_post(&request, r, callback, userdata, ret_pending);
}
