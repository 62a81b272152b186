/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve component, {instance?, operations?, concurrency?, method?, params?}?: the connection is a replica from now on. It is answered here,
 * so that the answer is written after its name is held, and before the first call.
 */
#include "config.h"

#include "daemon/io/method.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/io/connection.h"
#include "daemon/io/option.h"
#include "daemon/io/serving.h"

struct serve_options {
        struct tr_text instance;
        struct tr_items operations;
        uint32_t concurrency;
        struct tr_chosen_options chosen;
};

static const struct tr_option options[] = {
        { "instance", TR_OPTION_NAME, offsetof(struct serve_options, instance) },
        { "operations", TR_OPTION_ARRAY, offsetof(struct serve_options, operations) },
        { "concurrency", TR_OPTION_COUNT, offsetof(struct serve_options, concurrency) },
        TR_CHOSEN_OPTIONS(struct serve_options, chosen),
};

/* A list of names in one allocation: pointers, NULL, texts. */
static struct tr_failure *copy_operations(const struct tr_items *items, char ***ret_names) {
        struct tr_reader reader = tr_reader(items->data, items->bytes);
        struct tr_token token;
        size_t head_bytes = ((size_t)items->count + 1) * sizeof(char *);
        /* Each text is behind a head of a byte at least, which makes room for its NUL. */
        char **names = malloc(head_bytes + items->bytes);
        char *text = (char *)names + head_bytes;
        if (!names)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the operations");
        for (uint32_t i = 0; i < items->count; i++) {
                if (tr_read(&reader, &token) != 0 || !tr_token_is_text(&token) || memchr(token.data, '\0', token.len)) {
                        free(names);
                        return tr_failure_new(TR_CODE_BAD_REQUEST, "serve: operations[%u] has to be the name of an operation", i);
                }
                names[i] = text;
                memcpy(text, token.data, token.len);
                text[token.len] = '\0';
                text += token.len + 1;
        }
        names[items->count] = NULL;
        *ret_names = names;
        return NULL;
}

static void answer(struct tr_request *request, const char *instance) {
        if (request->wants_answer) {
                tr_write_map(request->result, 1);
                tr_write_text(request->result, "instance");
                tr_write_text(request->result, instance);
                tr_request_answer(request);
        }
        tr_serving_release(request->connection);
}

static struct tr_failure *serve(struct tr_request *request, const struct serve_options *chosen) {
        TR_CLEANUP(tr_component_unref_cleanup_) struct tr_component *component = NULL;
        TR_AUTO_FREE char **operations = NULL;
        TR_AUTO_FREE char *instance = tr_text_copy(&chosen->instance);
        char name[TR_NAME_MAX + 1];
        if (chosen->instance.data && !instance)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the instance");
        struct tr_failure *failure = chosen->operations.data ? copy_operations(&chosen->operations, &operations) : NULL;
        if (!failure)
                failure = tr_request_component(request, 0, &component);
        if (failure)
                return failure;
        const struct tr_serving_options serving = {
                .instance = instance,
                .operations = (const char *const *)operations,
                .concurrency = chosen->concurrency,
                .chosen = chosen->chosen,
        };
        failure = tr_serving_begin(request->connection, component, &serving, name);
        if (!failure)
                answer(request, name);
        return failure;
}

struct tr_failure *tr_method_serve(struct tr_request *request) {
        struct serve_options chosen = { 0 };
        struct tr_failure *failure = TR_OPTIONS_READ(request, 1, options, &chosen);
        return failure ? failure : serve(request, &chosen);
}
