/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening connections: as a target, which is to be found by its handle and shown, but not stopped.
 */
#include "config.h"

#include "daemon/io/listening.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "daemon/core/registry.h"
#include "daemon/core/system.h"

static const struct tr_target_ops listening_ops;

static int listening_new(struct tr_connection *connection) {
        struct tr_callee *callee = calloc(1, sizeof(*callee));
        int r = callee ? tr_callee_init(callee, &listening_ops, connection, "client") : tr_error_origin(-ENOMEM);
        if (r < 0) {
                free(callee);
                return tr_error_fold(r);
        }
        callee->failure = tr_callee_fault;
        r = tr_registry_add(&callee->target.system->registry, &callee->target);
        if (r < 0) {
                tr_target_unref(&callee->target);
                return tr_error_fold(r);
        }
        connection->listening = callee;
        return 0;
}

struct tr_failure *tr_listening_begin(struct tr_connection *connection, const struct tr_chosen_options *options) {
        struct tr_chosen chosen;
        struct tr_failure *failure = tr_chosen_init(&chosen, options, "message");
        if (failure)
                return failure;
        if (!connection->listening && listening_new(connection) < 0) {
                tr_chosen_deinit(&chosen);
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for a handle");
        }
        tr_lock_acquire(&connection->lock);
        struct tr_chosen before = connection->listening->chosen;
        connection->listening->chosen = chosen;
        tr_lock_release(&connection->lock);
        tr_chosen_deinit(&before);
        return NULL;
}

void tr_listening_end(struct tr_connection *connection) {
        struct tr_callee *callee = tr_steal(connection->listening);
        struct tr_list asks = TR_LIST_INIT(asks), waiting = TR_LIST_INIT(waiting);
        if (!callee)
                return;
        struct tr_connection *reference = tr_callee_leave(callee, &asks, &waiting);
        atomic_store(&callee->target.gone, true);
        /* Before anybody hears of the end: its names are free. */
        tr_registry_withdraw(&callee->target.system->registry, &callee->target);

        tr_callee_drop_waiting(callee, &waiting);
        tr_callee_reject_all(&asks);
        tr_target_end(&callee->target, NULL);
        tr_target_unref(&callee->target);
        tr_connection_unref(reference);
}

/* Nobody can stop a connection; the methods say so. */
static void on_stop(struct tr_target *target, enum tr_stop_reason reason, uint64_t within_ns) {
}

static void on_kill(struct tr_target *target) {
}

static uint32_t on_info(struct tr_target *target, struct tr_writer *writer) {
        struct tr_callee *callee = tr_callee_of(target);
        struct tr_connection *connection = tr_callee_connection(callee);
        uint32_t waiting = 0;
        uint64_t bytes = 0;
        if (connection) {
                tr_lock_acquire(&connection->lock);
                waiting = callee->waiting_count;
                bytes = callee->waiting_bytes;
                tr_lock_release(&connection->lock);
        }
        tr_write_text(writer, "state");
        tr_write_text(writer, connection ? "running" : "stopping");
        tr_write_text(writer, "mailbox");
        tr_write_uint(writer, waiting);
        tr_write_text(writer, "mailbox_bytes");
        tr_write_uint(writer, bytes);
        tr_connection_unref(connection);
        return 3;
}

static void on_free(struct tr_target *target) {
        struct tr_callee *callee = tr_callee_of(target);
        tr_callee_deinit(callee);
        free(callee);
}

static const struct tr_target_ops listening_ops = {
        .kind = TR_TARGET_CONNECTION,
        .post = tr_callee_post,
        .stop = on_stop,
        .kill = on_kill,
        .info = on_info,
        .free = on_free,
};
