/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen {method?, params?}?: a handle for this connection, by which others send to it and ask it. Called again it
 * answers the same handle, and what comes from then on comes by the method that was chosen last.
 */
#include "config.h"

#include "daemon/io/method.h"

#include "daemon/io/connection.h"
#include "daemon/io/listening.h"
#include "daemon/io/option.h"

struct listen_options {
        struct tr_chosen_options chosen;
};

static const struct tr_option options[] = { TR_CHOSEN_OPTIONS(struct listen_options, chosen) };

struct tr_failure *tr_method_listen(struct tr_request *request) {
        struct tr_connection *connection = request->connection;
        struct listen_options chosen = { 0 };
        struct tr_failure *failure = TR_OPTIONS_READ(request, 0, options, &chosen);
        if (!failure)
                failure = tr_listening_begin(connection, &chosen.chosen);
        if (failure)
                return failure;
        tr_response_write_handle(request->result, connection->form.values, &connection->listening->target.handle);
        return NULL;
}
