/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn.
 */
#include <errno.h>
#include <stdarg.h>

#include "client/options.h"
#include "client/params.h"
#include "client/request.h"
#include "client/troupe.h"
#include "proto/value.h"

static int write_options(struct tr_writer *out, const struct troupe_spawn_options *given) {
        struct troupe_spawn_options options;
        struct tr_map map;
        int r = tr_options_copy(&options, sizeof(options), TR_SIZE_TO(troupe_spawn_options, flags), given);

        if (r)
                return r;
        if (options.flags & ~(TROUPE_SPAWN_DETACH | TROUPE_SPAWN_IF_ABSENT))
                return -EINVAL;
        map = tr_map_begin(out);
        tr_map_text(&map, "name", options.name);
        tr_map_text(&map, "publish", options.publish);
        tr_map_flag(&map, "detach", options.flags & TROUPE_SPAWN_DETACH);
        tr_map_flag(&map, "if_absent", options.flags & TROUPE_SPAWN_IF_ABSENT);
        r = tr_map_number(&map, "heap", options.heap_bytes);
        if (!r)
                r = tr_map_number(&map, "mailbox", options.mailbox);
        if (!r)
                r = tr_map_number(&map, "mailbox_bytes", options.mailbox_bytes);
        if (!r)
                r = tr_map_number(&map, "async", options.async);
        tr_map_end(&map);
        return r;
}

static int write_spawn(struct tr_writer *out, const char *actor, const struct troupe_spawn_options *options,
                       const char *format, va_list args) {
        int r;

        if (!actor)
                return -EINVAL;
        tr_write_array(out, options ? 3 : 2);
        tr_write_text(out, actor);
        r = tr_params_write_list(out, format, args);
        return r || !options ? r : write_options(out, options);
}

int troupe_spawn(struct troupe *troupe, const char *actor, const struct troupe_spawn_options *options,
                 char ret_handle[TROUPE_HANDLE_SIZE], const char *format, ...) {
        struct troupe_value answer;
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "spawn", TR_REQUEST_WAIT);

        if (!r)
                TR_PARAMS_WITH_ARGS(r, format, write_spawn(request.out, actor, options, format, args));
        r = tr_request_call(&request, r, &answer);
        if (r || !ret_handle)
                return r;
        return troupe_value_handle(&answer, ret_handle) ? -EBADMSG : 0;
}

int troupe_spawn_async(struct troupe *troupe, const char *actor, const struct troupe_spawn_options *options,
                       troupe_callback *callback, void *userdata, struct troupe_pending **ret_pending,
                       const char *format, ...) {
        struct tr_request request;
        int r = tr_request_begin(&request, troupe, "spawn", TR_REQUEST_POST);

        if (!r)
                TR_PARAMS_WITH_ARGS(r, format, write_spawn(request.out, actor, options, format, args));
        return tr_request_post(&request, r, callback, userdata, ret_pending);
}
