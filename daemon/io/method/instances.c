/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instances component: the names that are held now.
 */
#include "config.h"

#include "daemon/io/method.h"

#include "daemon/core/replica.h"

struct tr_failure *tr_method_instances(struct tr_request *request) {
        struct tr_component *component;
        struct tr_failure *failure = tr_request_component(request, 0, &component);
        if (failure)
                return failure;
        tr_component_write_instances(component, request->result);
        tr_component_unref(component);
        return NULL;
}
