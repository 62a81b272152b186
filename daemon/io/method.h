/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_METHOD_H
#define TR_IO_METHOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/io/peer.h"
#include "daemon/io/request.h"

/*
 * The methods of the protocol, one file each under method/. A method reads its params, does what it is for, and
 * either writes its answer into request->result, or sees to it that it comes later (request->deferred), or answers
 * why not: a failure, which goes to whoever asked.
 */
struct tr_method {
        const char *name;
        enum tr_role role; /* that it needs */
        uint32_t params_min;
        uint32_t params_max;
        bool batched;      /* it adds to the batch; before others that is handed over, so they see what came before */
        const char *usage; /* its params, for people */
        struct tr_failure *(*run)(struct tr_request *request);
};

/* NULL where there is no such method. */
const struct tr_method *tr_method_find(const char *name, size_t len);

struct tr_failure *tr_method_ask(struct tr_request *request);
struct tr_failure *tr_method_backup(struct tr_request *request);
struct tr_failure *tr_method_call(struct tr_request *request);
struct tr_failure *tr_method_cancel(struct tr_request *request);
struct tr_failure *tr_method_component(struct tr_request *request);
struct tr_failure *tr_method_detach(struct tr_request *request);
struct tr_failure *tr_method_done(struct tr_request *request);
struct tr_failure *tr_method_find_name(struct tr_request *request);
struct tr_failure *tr_method_hello(struct tr_request *request);
struct tr_failure *tr_method_info(struct tr_request *request);
struct tr_failure *tr_method_listen(struct tr_request *request);
struct tr_failure *tr_method_instances(struct tr_request *request);
struct tr_failure *tr_method_list(struct tr_request *request);
struct tr_failure *tr_method_metrics(struct tr_request *request);
struct tr_failure *tr_method_ping(struct tr_request *request);
struct tr_failure *tr_method_pool(struct tr_request *request);
struct tr_failure *tr_method_publish(struct tr_request *request);
struct tr_failure *tr_method_reload(struct tr_request *request);
struct tr_failure *tr_method_send(struct tr_request *request);
struct tr_failure *tr_method_serve(struct tr_request *request);
struct tr_failure *tr_method_shutdown(struct tr_request *request);
struct tr_failure *tr_method_spawn(struct tr_request *request);
struct tr_failure *tr_method_stop(struct tr_request *request);
struct tr_failure *tr_method_subscribe(struct tr_request *request);
struct tr_failure *tr_method_task(struct tr_request *request);
struct tr_failure *tr_method_task_drop(struct tr_request *request);
struct tr_failure *tr_method_task_retry(struct tr_request *request);
struct tr_failure *tr_method_tasks(struct tr_request *request);
struct tr_failure *tr_method_trace(struct tr_request *request);
struct tr_failure *tr_method_unpublish(struct tr_request *request);
struct tr_failure *tr_method_unsubscribe(struct tr_request *request);
struct tr_failure *tr_method_withdraw(struct tr_request *request);

#endif
