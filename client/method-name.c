/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The methods about names and whose an actor is: find, publish, unpublish, detach. Their params are a name, a target,
 * or both.
 */
#include <errno.h>
#include <stdbool.h>

#include "client/params.h"
#include "client/request.h"
#include "client/troupe.h"
#include "proto/value.h"

static int write_name(struct tr_writer *out, const char *name) {
        if (!name)
                return -EINVAL;
        tr_write_array(out, 1);
        tr_write_text(out, name);
        return 0;
}

static int write_target(struct tr_writer *out, const char *target) {
        tr_write_array(out, 1);
        return tr_params_write_target(out, target);
}

static int write_name_and_target(struct tr_writer *out, const char *name, const char *target) {
        if (!name)
                return -EINVAL;
        tr_write_array(out, 2);
        tr_write_text(out, name);
        return tr_params_write_target(out, target);
}

int troupe_find(struct troupe *troupe, const char *name, char ret_handle[TROUPE_HANDLE_SIZE]) {
        struct troupe_value answer;
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "find", TR_REQUEST_WAIT);

        if (!r)
                r = write_name(request.out, name);
        r = tr_request_call(&request, r, &answer);
        if (r)
                return r;
        if (troupe_value_type(&answer) == TROUPE_NIL)
                return -ENOENT;
        return troupe_value_handle(&answer, ret_handle) ? -EBADMSG : 0;
}

int troupe_find_async(struct troupe *troupe, const char *name, troupe_callback *callback, void *userdata,
                      struct troupe_pending **ret_pending) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "find", TR_REQUEST_POST);

        if (!r)
                r = write_name(request.out, name);
        return tr_request_post(&request, r, callback, userdata, ret_pending);
}

int troupe_publish(struct troupe *troupe, const char *name, const char *target) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "publish", TR_REQUEST_WAIT);

        if (!r)
                r = write_name_and_target(request.out, name, target);
        return tr_request_call(&request, r, NULL);
}

int troupe_publish_async(struct troupe *troupe, const char *name, const char *target, troupe_callback *callback,
                         void *userdata, struct troupe_pending **ret_pending) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "publish", TR_REQUEST_POST);

        if (!r)
                r = write_name_and_target(request.out, name, target);
        return tr_request_post(&request, r, callback, userdata, ret_pending);
}

int troupe_unpublish(struct troupe *troupe, const char *name) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "unpublish", TR_REQUEST_WAIT);

        if (!r)
                r = write_name(request.out, name);
        return tr_request_call(&request, r, NULL);
}

int troupe_unpublish_async(struct troupe *troupe, const char *name, troupe_callback *callback, void *userdata,
                           struct troupe_pending **ret_pending) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "unpublish", TR_REQUEST_POST);

        if (!r)
                r = write_name(request.out, name);
        return tr_request_post(&request, r, callback, userdata, ret_pending);
}

int troupe_detach(struct troupe *troupe, const char *target) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "detach", TR_REQUEST_WAIT);

        if (!r)
                r = write_target(request.out, target);
        return tr_request_call(&request, r, NULL);
}

int troupe_detach_async(struct troupe *troupe, const char *target, troupe_callback *callback, void *userdata,
                        struct troupe_pending **ret_pending) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "detach", TR_REQUEST_POST);

        if (!r)
                r = write_target(request.out, target);
        return tr_request_post(&request, r, callback, userdata, ret_pending);
}
