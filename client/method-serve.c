/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve and withdraw. A withdraw that waits there is not: it would wait for answers to calls that only
 * troupe_process() brings.
 */
#include <errno.h>

#include "client/options.h"
#include "client/request.h"
#include "client/standing.h"
#include "client/troupe.h"
#include "proto/value.h"

static void write_names(struct tr_map *map, const char *key, const char *const *names) {
        uint32_t count = 0;

        if (!names)
                return;
        while (names[count])
                count++;
        tr_map_array(map, key, count);
        for (uint32_t i = 0; i < count; i++)
                tr_write_text(map->out, names[i]);
}

static int write_serve(struct tr_request *request, const char *component, const struct troupe_serve_options *given,
                       troupe_operation_callback *on_operation, void *userdata) {
        struct troupe_serve_options options;
        struct tr_map map;
        int r = tr_options_copy(&options, sizeof(options), TR_SIZE_TO(troupe_serve_options, on_cancelled), given);

        if (r)
                return r;
        if (!component || !on_operation)
                return -EINVAL;
        tr_write_array(request->out, given ? 2 : 1);
        tr_write_text(request->out, component);
        if (given) {
                map = tr_map_begin(request->out);
                tr_map_text(&map, "instance", options.instance);
                write_names(&map, "operations", options.operations);
                r = tr_map_number(&map, "concurrency", options.concurrency);
                tr_map_end(&map);
        }
        if (r)
                return r;
        return tr_standing_add(request,
                               &(struct tr_standing){
                                       .kind = TR_STANDING_SERVICE,
                                       .on_operation = on_operation,
                                       .on_cancelled = options.on_cancelled,
                                       .userdata = userdata,
                               },
                               component);
}

static int write_withdraw(struct tr_request *request, const char *component) {
        if (!component)
                return -EINVAL;
        tr_write_array(request->out, 1);
        tr_write_text(request->out, component);
        return tr_standing_add(request, &(struct tr_standing){ .kind = TR_STANDING_SERVICE, .is_end = true },
                               component);
}

int troupe_serve(struct troupe *troupe, const char *component, const struct troupe_serve_options *options,
                 troupe_operation_callback *on_operation, void *operation_userdata, struct troupe_value *ret_answer) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "serve", TR_REQUEST_WAIT);

        if (!r)
                r = write_serve(&request, component, options, on_operation, operation_userdata);
        return tr_request_call(&request, r, ret_answer);
}

int troupe_serve_async(struct troupe *troupe, const char *component, const struct troupe_serve_options *options,
                       troupe_operation_callback *on_operation, void *operation_userdata, troupe_callback *callback,
                       void *userdata, struct troupe_pending **ret_pending) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "serve", TR_REQUEST_POST);

        if (!r)
                r = write_serve(&request, component, options, on_operation, operation_userdata);
        return tr_request_post(&request, r, callback, userdata, ret_pending);
}

int troupe_withdraw_async(struct troupe *troupe, const char *component, troupe_callback *callback, void *userdata,
                          struct troupe_pending **ret_pending) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "withdraw", TR_REQUEST_POST);

        if (!r)
                r = write_withdraw(&request, component);
        return tr_request_post(&request, r, callback, userdata, ret_pending);
}
