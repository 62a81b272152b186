/* SPDX-License-Identifier: Apache-2.0 */
/* What operations ask of their component's entities beside the one that they were called for. */
#include "daemon/core/entity.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/component.h"
#include "daemon/core/failure.h"
#include "daemon/core/system.h"

static struct tr_failure *bad(const char *what) {
        return tr_failure_new(TR_CODE_BAD_REQUEST, "entities: %s", what);
}

static struct tr_failure *check(const struct tr_entity_request *request) {
        if (request->id && !tr_store_text_is_valid(request->id, request->id_len))
                return bad("an id is 1 to 256 bytes of UTF-8 without control characters");
        if (request->after && !tr_store_text_is_valid(request->after, request->after_len))
                return bad("after is an id: 1 to 256 bytes of UTF-8 without control characters");
        if (request->sort && memchr(request->sort, '\0', request->sort_len))
                return bad("sort is the name of a field, without NUL characters");
        if (!request->id && (request->kind == TR_STORE_GET || request->kind == TR_STORE_DELETE))
                return bad("an id is missing");
        return NULL;
}

static char *copy_text(const char *text, size_t len) {
        return text ? strndup(text, len) : NULL;
}

struct tr_failure *tr_entity_ask(struct tr_component *component, const struct tr_entity_request *request,
                                 struct tr_message *take_message) {
        struct tr_failure *failure = check(request);
        if (failure)
                return failure;
        struct tr_manifest *manifest = tr_component_manifest(component);
        char *id = copy_text(request->id, request->id_len);
        char *sort = copy_text(request->sort, request->sort_len);
        char *after = copy_text(request->after, request->after_len);
        const struct tr_store_job job = {
                .kind = request->kind,
                .component = component->target.label,
                .id = id,
                .document = request->document,
                .document_bytes = request->document_bytes,
                .wants_value = true,
                .expect = request->expect,
                .schema = manifest->entity,
                .list = {
                        .where = request->where,
                        .where_bytes = request->where_bytes,
                        .sort = sort,
                        .after = after,
                        .limit = request->limit,
                },
        };
        if ((request->id && !id) || (request->sort && !sort) || (request->after && !after))
                failure = tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for a question to the store");
        else
                failure = tr_store_ask(component->target.system, &job, manifest, take_message);
        free(id);
        free(sort);
        free(after);
        tr_manifest_unref(manifest);
        return failure;
}
