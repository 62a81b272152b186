/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call and task.
 */
#include <errno.h>
#include <stdarg.h>

#include "client/options.h"
#include "client/params.h"
#include "client/request.h"
#include "client/troupe.h"
#include "proto/value.h"

/* The params that both have: component, operation, input. */
static int write_operation(struct tr_writer *out, bool has_options, const char *component, const char *operation,
                           const char *format, va_list args) {
        if (!component || !operation)
                return -EINVAL;
        tr_write_array(out, has_options ? 4 : 3);
        tr_write_text(out, component);
        tr_write_text(out, operation);
        return tr_params_write_one(out, format, args);
}

static int write_call_options(struct tr_writer *out, const struct troupe_call_options *given) {
        struct troupe_call_options options;
        struct tr_map map;
        int r;

        if (!given)
                return 0;
        r = tr_options_copy(&options, sizeof(options), TR_SIZE_TO(troupe_call_options, trace), given);
        if (r)
                return r;
        map = tr_map_begin(out);
        tr_map_text(&map, "instance", options.instance);
        tr_map_text(&map, "id", options.id);
        tr_map_text(&map, "trace", options.trace);
        r = tr_map_number(&map, "timeout", options.timeout_ms);
        tr_map_end(&map);
        return r;
}

static int write_task_options(struct tr_writer *out, const struct troupe_task_options *given) {
        struct troupe_task_options options;
        struct tr_map map;
        int r;

        if (!given)
                return 0;
        r = tr_options_copy(&options, sizeof(options), TR_SIZE_TO(troupe_task_options, trace), given);
        if (r)
                return r;
        map = tr_map_begin(out);
        tr_map_text(&map, "key", options.key);
        tr_map_text(&map, "id", options.id);
        tr_map_text(&map, "trace", options.trace);
        r = tr_map_number(&map, "delay", options.delay_ms);
        if (!r)
                r = tr_map_number(&map, "at", options.at_ms);
        if (!r)
                r = tr_map_number(&map, "expires", options.expires_ms);
        tr_map_end(&map);
        return r;
}

int troupe_call(struct troupe *troupe, const char *component, const char *operation,
                const struct troupe_call_options *options, struct troupe_value *ret_answer, const char *format, ...) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "call", TR_REQUEST_WAIT);

        if (!r)
                TR_PARAMS_WITH_ARGS(r, format,
                                    write_operation(request.out, options, component, operation, format, args));
        if (!r)
                r = write_call_options(request.out, options);
        return tr_request_call(&request, r, ret_answer);
}

int troupe_call_async(struct troupe *troupe, const char *component, const char *operation,
                      const struct troupe_call_options *options, troupe_callback *callback, void *userdata,
                      struct troupe_pending **ret_pending, const char *format, ...) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "call", TR_REQUEST_POST);

        if (!r)
                TR_PARAMS_WITH_ARGS(r, format,
                                    write_operation(request.out, options, component, operation, format, args));
        if (!r)
                r = write_call_options(request.out, options);
        return tr_request_post(&request, r, callback, userdata, ret_pending);
}

int troupe_task(struct troupe *troupe, const char *component, const char *operation,
                const struct troupe_task_options *options, struct troupe_value *ret_answer, const char *format, ...) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "task", TR_REQUEST_WAIT);

        if (!r)
                TR_PARAMS_WITH_ARGS(r, format,
                                    write_operation(request.out, options, component, operation, format, args));
        if (!r)
                r = write_task_options(request.out, options);
        return tr_request_call(&request, r, ret_answer);
}

int troupe_task_async(struct troupe *troupe, const char *component, const char *operation,
                      const struct troupe_task_options *options, troupe_callback *callback, void *userdata,
                      struct troupe_pending **ret_pending, const char *format, ...) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "task", TR_REQUEST_POST);

        if (!r)
                TR_PARAMS_WITH_ARGS(r, format,
                                    write_operation(request.out, options, component, operation, format, args));
        if (!r)
                r = write_task_options(request.out, options);
        return tr_request_post(&request, r, callback, userdata, ret_pending);
}
