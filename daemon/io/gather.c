/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "daemon/io/gather.h"

#include "daemon/base/thread.h"
#include "daemon/io/connection.h"

void tr_gather_init(struct tr_gather *gather) {
        gather->on = false;
        tr_list_init(&gather->connections);
}

void tr_gather_begin(struct tr_gather *gather) {
        gather->on = true;
}

bool tr_gather_takes_locked(struct tr_gather *gather, struct tr_connection *connection) {
        /* the role first: the rest is the loop's */
        if (tr_thread_role() != TR_THREAD_LOOP || !gather->on)
                return false;
        if (tr_list_is_empty(&connection->gather_link))
                tr_list_append(&gather->connections, &tr_connection_ref(connection)->gather_link);
        return true;
}

void tr_gather_end(struct tr_gather *gather) {
        struct tr_connection *connection;
        gather->on = false;
        while ((connection = tr_list_first(&gather->connections, struct tr_connection, gather_link))) {
                tr_list_unlink(&connection->gather_link);
                tr_lock_acquire(&connection->lock);
                if (connection->fd >= 0)
                        tr_connection_deliver_locked(connection, false);
                tr_lock_release(&connection->lock);
                tr_connection_unref(connection);
        }
}
