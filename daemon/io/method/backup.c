/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backup path: nil once the store is in a file of that name, as it was at one moment. The daemon writes it, so the name is absolute: nobody
 * knows where the daemon stands.
 */
#include "config.h"

#include "daemon/io/method.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/message.h"
#include "daemon/core/store.h"
#include "daemon/io/connection.h"
#include "daemon/io/server_internal.h"

static struct tr_failure *read_path(const struct tr_request *request, char **ret_path) {
        const char *path;
        size_t len;
        struct tr_failure *failure = tr_request_text(request, 0, &path, &len);
        if (!failure && (len == 0 || path[0] != '/' || memchr(path, '\0', len)))
                failure = tr_request_bad_param(request, 0, "an absolute path");
        if (failure)
                return failure;
        *ret_path = strndup(path, len);
        return *ret_path ? NULL : tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the request");
}

static struct tr_failure *ask(const struct tr_request *request, const void *userdata, struct tr_message *take_message) {
        const struct tr_store_job job = { .kind = TR_STORE_BACKUP, .path = userdata };
        return tr_store_ask(request->connection->server->system, &job, NULL, take_message);
}

struct tr_failure *tr_method_backup(struct tr_request *request) {
        char *path;
        struct tr_failure *failure = read_path(request, &path);
        if (failure)
                return failure;
        struct tr_message *message = tr_message_new(TR_MESSAGE_DONE, "", 0, NULL, 0, 0);
        failure = message ? tr_request_hand_on(request, message, ask, path) : tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the request");
        free(path);
        return failure;
}
