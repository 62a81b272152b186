/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen.
 */
#include <errno.h>

#include "client/request.h"
#include "client/standing.h"
#include "client/troupe.h"

static int write_listen(struct tr_request *request, troupe_message_callback *on_message, void *userdata) {
        if (!on_message)
                return -EINVAL;
        tr_write_array(request->out, 0);
        return tr_standing_add(request,
                               &(struct tr_standing){
                                       .kind = TR_STANDING_LISTENER,
                                       .on_message = on_message,
                                       .userdata = userdata,
                               },
                               "");
}

int troupe_listen(struct troupe *troupe, troupe_message_callback *on_message, void *message_userdata,
                  char ret_handle[TROUPE_HANDLE_SIZE]) {
        struct troupe_value answer;
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "listen", TR_REQUEST_WAIT);

        if (!r)
                r = write_listen(&request, on_message, message_userdata);
        r = tr_request_call(&request, r, &answer);
        if (r || !ret_handle)
                return r;
        return troupe_value_handle(&answer, ret_handle) ? -EBADMSG : 0;
}

int troupe_listen_async(struct troupe *troupe, troupe_message_callback *on_message, void *message_userdata,
                        troupe_callback *callback, void *userdata, struct troupe_pending **ret_pending) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "listen", TR_REQUEST_POST);

        if (!r)
                r = write_listen(&request, on_message, message_userdata);
        return tr_request_post(&request, r, callback, userdata, ret_pending);
}
