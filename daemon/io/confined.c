/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Confined connections.
 */
#include "config.h"

#include "daemon/io/confined.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/failure.h"
#include "daemon/core/replica.h"
#include "daemon/io/connection.h"
#include "daemon/io/method.h"

struct tr_confined {
        struct tr_adoption adoption; /* with copies of all that it has */
        char *component;
        char *instance;
};

struct tr_confined *tr_confined_new(const struct tr_adoption *adoption) {
        struct tr_confined *confined = calloc(1, sizeof(*confined));
        if (!confined)
                return NULL;
        confined->adoption = *adoption;
        confined->component = strdup(adoption->component);
        confined->instance = adoption->instance ? strdup(adoption->instance) : NULL;
        if (adoption->manifest)
                tr_manifest_ref(adoption->manifest);
        if (adoption->successor_of)
                tr_replica_ref(adoption->successor_of);
        if (!confined->component || (adoption->instance && !confined->instance)) {
                tr_confined_free(confined);
                return NULL;
        }
        return confined;
}

void tr_confined_free(struct tr_confined *confined) {
        if (!confined)
                return;
        tr_replica_unref(confined->adoption.successor_of);
        tr_manifest_unref(confined->adoption.manifest);
        free(confined->instance);
        free(confined->component);
        free(confined);
}

struct tr_failure *tr_confined_check_method(const struct tr_connection *connection, const struct tr_method *method) {
        static const char *const allowed[] = { "hello", "ping", "cancel", "call", "instances", "serve", "withdraw" };
        if (!connection->confined)
                return NULL;
        for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
                if (strcmp(method->name, allowed[i]) == 0)
                        return NULL;
        return tr_failure_new(TR_CODE_DENIED, "%s: a process that the daemon has started may serve its component, and call, only",
                              method->name);
}

struct tr_failure *tr_confined_check_serve(const struct tr_connection *connection, const char *component,
                                           struct tr_replica_options *options) {
        const struct tr_confined *confined = connection->confined;
        if (!confined)
                return NULL;
        if (strcmp(component, confined->component) != 0)
                return tr_failure_new(TR_CODE_DENIED, "serve: this process was started for %s, and may serve nothing else",
                                      confined->component);
        if (options->instance && (!confined->instance || strcmp(options->instance, confined->instance) != 0))
                return tr_failure_new(TR_CODE_DENIED, "serve: the name of this process is not its own to choose");
        options->instance = confined->instance;
        options->index = confined->adoption.index;
        options->manifest = confined->adoption.manifest;
        options->started_as = confined->adoption.started_as;
        options->successor_of = confined->adoption.successor_of;
        options->kind = "process";
        return NULL;
}

void tr_confined_tell_serves(const struct tr_connection *connection, struct tr_replica *replica) {
        const struct tr_confined *confined = connection->confined;
        if (confined && confined->adoption.serves)
                confined->adoption.serves(confined->adoption.userdata, replica);
}

void tr_confined_tell_ended(const struct tr_connection *connection) {
        const struct tr_confined *confined = connection->confined;
        if (confined && confined->adoption.ended)
                confined->adoption.ended(confined->adoption.userdata);
}
