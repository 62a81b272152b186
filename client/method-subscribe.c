/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subscribe and unsubscribe.
 */
#include <errno.h>

#include "client/options.h"
#include "client/request.h"
#include "client/standing.h"
#include "client/troupe.h"
#include "proto/value.h"

static int write_subscribe(struct tr_request *request, const char *topic, const struct troupe_subscribe_options *given,
                           troupe_event_callback *on_event, void *userdata) {
        struct troupe_subscribe_options options;
        struct tr_map map;
        int r = tr_options_copy(&options, sizeof(options), TR_SIZE_TO(troupe_subscribe_options, rate), given);

        if (r)
                return r;
        if (!topic || !on_event)
                return -EINVAL;
        tr_write_array(request->out, given ? 2 : 1);
        tr_write_text(request->out, topic);
        if (given) {
                map = tr_map_begin(request->out);
                r = tr_map_number(&map, "rate", options.rate);
                tr_map_end(&map);
        }
        if (r)
                return r;
        return tr_standing_add(request,
                               &(struct tr_standing){
                                       .kind = TR_STANDING_SUBSCRIPTION,
                                       .on_event = on_event,
                                       .userdata = userdata,
                               },
                               topic);
}

static int write_unsubscribe(struct tr_request *request, const char *topic) {
        if (!topic)
                return -EINVAL;
        tr_write_array(request->out, 1);
        tr_write_text(request->out, topic);
        return tr_standing_add(request, &(struct tr_standing){ .kind = TR_STANDING_SUBSCRIPTION, .is_end = true },
                               topic);
}

int troupe_subscribe(struct troupe *troupe, const char *topic, const struct troupe_subscribe_options *options,
                     troupe_event_callback *on_event, void *event_userdata) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "subscribe", TR_REQUEST_WAIT);

        if (!r)
                r = write_subscribe(&request, topic, options, on_event, event_userdata);
        return tr_request_call(&request, r, NULL);
}

int troupe_subscribe_async(struct troupe *troupe, const char *topic, const struct troupe_subscribe_options *options,
                           troupe_event_callback *on_event, void *event_userdata, troupe_callback *callback,
                           void *userdata, struct troupe_pending **ret_pending) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "subscribe", TR_REQUEST_POST);

        if (!r)
                r = write_subscribe(&request, topic, options, on_event, event_userdata);
        return tr_request_post(&request, r, callback, userdata, ret_pending);
}

int troupe_unsubscribe(struct troupe *troupe, const char *topic) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "unsubscribe", TR_REQUEST_WAIT);

        if (!r)
                r = write_unsubscribe(&request, topic);
        return tr_request_call(&request, r, NULL);
}

int troupe_unsubscribe_async(struct troupe *troupe, const char *topic, troupe_callback *callback, void *userdata,
                             struct troupe_pending **ret_pending) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "unsubscribe", TR_REQUEST_POST);

        if (!r)
                r = write_unsubscribe(&request, topic);
        return tr_request_post(&request, r, callback, userdata, ret_pending);
}
