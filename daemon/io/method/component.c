/* SPDX-License-Identifier: Apache-2.0 */
/*
 * component manifest: declares a component for as long as the connection's session lasts. What it starts outside of the daemon, or
 * lets in from there, is for those who operate it.
 */
#include "config.h"

#include "daemon/io/method.h"

#include <string.h>

#include "daemon/contract/manifest.h"
#include "daemon/core/component.h"
#include "daemon/core/system.h"
#include "daemon/io/connection.h"
#include "daemon/io/server_internal.h"

static struct tr_failure *wrong(enum tr_code code, const char *path, const char *reason) {
        struct tr_failure *failure = tr_failure_new(code, "component: %s %s", *path ? path : "the manifest", reason);

        tr_failure_add_text(failure, "path", path, strlen(path));
        return failure;
}

static struct tr_failure *read_manifest(const struct tr_request *request, struct tr_manifest **ret_manifest) {
        const struct tr_span *param = &request->params[0].span;
        struct tr_manifest_problem problem = { 0 };
        struct tr_failure *failure = NULL;
        int r = tr_manifest_parse(param->data, param->bytes, &problem, ret_manifest);

        if (r < 0)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the manifest");
        if (r > 0)
                failure = wrong(r == TR_MANIFEST_NO_JSON ? TR_CODE_NOT_SENDABLE : TR_CODE_BAD_REQUEST, problem.path,
                                problem.reason);
        tr_manifest_problem_deinit(&problem);
        return failure;
}

/* What the peer may not declare, and what the daemon's limits do not allow. */
static struct tr_failure *check(const struct tr_request *request, const struct tr_manifest *manifest) {
        const struct tr_connection *connection = request->connection;
        uint64_t heap_max = connection->server->system->limits.heap_max_bytes;

        if ((manifest->process || manifest->has_allow) && !(connection->roles & TR_ROLE_OPERATE))
                return tr_failure_new(TR_CODE_DENIED, "component: `%s` in a manifest needs the role operate",
                                      manifest->process ? "process" : "allow");
        if (manifest->heap_bytes > heap_max)
                return wrong(TR_CODE_BAD_REQUEST, "/heap", "is above limits.heap_max");
        return tr_request_check_name(request, manifest->name, strlen(manifest->name));
}

static struct tr_failure *declare(struct tr_request *request, struct tr_manifest *manifest) {
        struct tr_connection *connection = request->connection;
        struct tr_session *session = tr_connection_session(connection);

        if (!session)
                return tr_failure_new(TR_CODE_NO_MEMORY, "component: out of memory");
        return tr_component_declare(connection->server->system, session, manifest, connection->peer.uid,
                                    connection->peer.pid, NULL);
}

struct tr_failure *tr_method_component(struct tr_request *request) {
        struct tr_manifest *manifest = NULL;
        struct tr_failure *failure = read_manifest(request, &manifest);

        if (!failure)
                failure = check(request, manifest);
        if (!failure)
                failure = declare(request, manifest);
        tr_manifest_unref(manifest);
        return failure;
}
