/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any method by its name, as a request or as a notification.
 */
#include <stdarg.h>

#include "client/params.h"
#include "client/request.h"
#include "client/troupe.h"

int troupe_request(struct troupe *troupe, const char *method, struct troupe_value *ret_answer, const char *format,
                   ...) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, method, TR_REQUEST_WAIT);

        if (!r)
                TR_PARAMS_WITH_ARGS(r, format, tr_params_write_list(request.out, format, args));
        return tr_request_call(&request, r, ret_answer);
}

int troupe_request_async(struct troupe *troupe, const char *method, troupe_callback *callback, void *userdata,
                         struct troupe_pending **ret_pending, const char *format, ...) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, method, TR_REQUEST_POST);

        if (!r)
                TR_PARAMS_WITH_ARGS(r, format, tr_params_write_list(request.out, format, args));
        return tr_request_post(&request, r, callback, userdata, ret_pending);
}

int troupe_notify(struct troupe *troupe, const char *method, const char *format, ...) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, method, TR_REQUEST_NOTIFY);

        if (!r)
                TR_PARAMS_WITH_ARGS(r, format, tr_params_write_list(request.out, format, args));
        return tr_request_notify(&request, r);
}
