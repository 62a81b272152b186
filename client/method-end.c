/* SPDX-License-Identifier: Apache-2.0 */
/*
 * done and stop.
 */
#include <errno.h>

#include "client/options.h"
#include "client/params.h"
#include "client/request.h"
#include "client/troupe.h"
#include "proto/value.h"

static int write_done(struct tr_writer *out, const char *target, const struct troupe_done_options *given) {
        struct troupe_done_options options;
        struct tr_map map;
        int r = tr_options_copy(&options, sizeof(options), TR_SIZE_TO(troupe_done_options, timeout_ms), given);

        if (r)
                return r;
        tr_write_array(out, 2);
        r = tr_params_write_target(out, target);
        if (r)
                return r;
        map = tr_map_begin(out);
        r = tr_map_number(&map, "timeout", options.timeout_ms);
        tr_map_end(&map);
        return r;
}

static int write_stop(struct tr_writer *out, const char *target, const struct troupe_stop_options *given) {
        struct troupe_stop_options options;
        struct tr_map map;
        int r = tr_options_copy(&options, sizeof(options), TR_SIZE_TO(troupe_stop_options, flags), given);

        if (r)
                return r;
        if (options.flags & ~TROUPE_STOP_KILL)
                return -EINVAL;
        tr_write_array(out, 2);
        r = tr_params_write_target(out, target);
        if (r)
                return r;
        map = tr_map_begin(out);
        tr_map_flag(&map, "kill", options.flags & TROUPE_STOP_KILL);
        r = tr_map_number(&map, "within", options.within_ms);
        tr_map_end(&map);
        return r;
}

int troupe_done(struct troupe *troupe, const char *target, const struct troupe_done_options *options) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "done", TR_REQUEST_WAIT);

        if (!r)
                r = write_done(request.out, target, options);
        return tr_request_call(&request, r, NULL);
}

int troupe_done_async(struct troupe *troupe, const char *target, const struct troupe_done_options *options,
                      troupe_callback *callback, void *userdata, struct troupe_pending **ret_pending) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "done", TR_REQUEST_POST);

        if (!r)
                r = write_done(request.out, target, options);
        return tr_request_post(&request, r, callback, userdata, ret_pending);
}

int troupe_stop(struct troupe *troupe, const char *target, const struct troupe_stop_options *options) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "stop", TR_REQUEST_WAIT);

        if (!r)
                r = write_stop(request.out, target, options);
        return tr_request_call(&request, r, NULL);
}

int troupe_stop_async(struct troupe *troupe, const char *target, const struct troupe_stop_options *options,
                      troupe_callback *callback, void *userdata, struct troupe_pending **ret_pending) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "stop", TR_REQUEST_POST);

        if (!r)
                r = write_stop(request.out, target, options);
        return tr_request_post(&request, r, callback, userdata, ret_pending);
}
