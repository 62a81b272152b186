/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hello, as often as the program likes. Whatever it asks for, errors stay maps and values typed: the rest of the
 * library reads those.
 */
#include "client/options.h"
#include "client/request.h"
#include "client/standing.h"
#include "client/troupe.h"
#include "proto/limits.h"
#include "proto/value.h"

static int write_hello(struct tr_request *request, const struct troupe_hello_options *given) {
        struct troupe_hello_options options;
        struct tr_map map;
        int r = tr_options_copy(&options, sizeof(options), TR_SIZE_TO(troupe_hello_options, timeout_ms), given);

        if (r)
                return r;
        tr_write_array(request->out, 1);
        map = tr_map_begin(request->out);
        tr_map_text(&map, "client", options.client);
        tr_map_text(&map, "errors", "map");
        tr_map_text(&map, "values", "typed");
        r = tr_map_number(&map, "protocol", TR_PROTOCOL_VERSION);
        if (!r)
                r = tr_map_number(&map, "timeout", options.timeout_ms);
        tr_map_end(&map);
        return r ? r : tr_standing_add(request, &(struct tr_standing){ .kind = TR_STANDING_HELLO }, "");
}

int troupe_hello(struct troupe *troupe, const struct troupe_hello_options *options, struct troupe_value *ret_answer) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "hello", TR_REQUEST_WAIT);

        if (!r)
                r = write_hello(&request, options);
        return tr_request_call(&request, r, ret_answer);
}

int troupe_hello_async(struct troupe *troupe, const struct troupe_hello_options *options, troupe_callback *callback,
                       void *userdata, struct troupe_pending **ret_pending) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "hello", TR_REQUEST_POST);

        if (!r)
                r = write_hello(&request, options);
        return tr_request_post(&request, r, callback, userdata, ret_pending);
}
