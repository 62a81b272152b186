/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_REQUEST_H
#define TR_IO_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/failure.h"
#include "daemon/io/response.h"
#include "proto/frame.h"
#include "proto/value.h"

struct tr_component;
struct tr_connection;
struct tr_message;
struct tr_method;
struct tr_target;

#define TR_PARAMS_MAX 4

/* One parameter: its value (of a container, the head), and the bytes it is written in. */
struct tr_param {
        struct tr_token token;
        struct tr_span span;
        const uint8_t *items; /* of a container: where they begin; they end where the span does */
};

/*
 * One request or notification while a method handles it. All of it points into the piece that was read. Loop thread.
 */
struct tr_request {
        struct tr_connection *connection;
        const struct tr_method *method;
        bool wants_answer; /* a request; else a notification */
        uint32_t id;
        uint32_t count; /* of params; those that are nil at the end are not counted */
        struct tr_param params[TR_PARAMS_MAX];
        struct tr_writer *result; /* what the method writes its answer to; nothing written is nil */
        bool deferred;            /* the method has seen to it that it is answered: later, or already */
};

/* Reads the params of a frame: NULL, or bad-request. Their number is what the method takes. */
struct tr_failure *tr_request_read_params(struct tr_request *request, const struct tr_span *params);

/* Whether an optional parameter is there. */
static inline bool tr_request_has(const struct tr_request *request, uint32_t index) {
        return index < request->count && request->params[index].token.type != TR_NIL;
}

/* A bad-request that says which parameter, by its place and name, and what it has to be. */
struct tr_failure *tr_request_bad_param(const struct tr_request *request, uint32_t index, const char *wanted)
        __attribute__((returns_nonnull));

/* A parameter that is text: NULL with the output set, or bad-request. */
struct tr_failure *tr_request_text(const struct tr_request *request, uint32_t index, const char **ret_text,
                                   size_t *ret_len);
/* One that is a name. */
struct tr_failure *tr_request_name(const struct tr_request *request, uint32_t index, const char **ret_name,
                                   size_t *ret_len);
/* One that is an array: its elements, one behind another, and how many. */
struct tr_failure *tr_request_array(const struct tr_request *request, uint32_t index, struct tr_span *ret_elements,
                                    uint32_t *ret_count);

/* NULL, or denied: the rules of access do not grant this name to the peer. */
struct tr_failure *tr_request_check_name(const struct tr_request *request, const char *name, size_t len);

/*
 * One that is a target: a handle, its text, or a published name. NULL and a new reference; or bad-request, denied
 * (a name that is not granted), not-found (one that nobody has), not-running (a handle that nothing has any more).
 */
struct tr_failure *tr_request_target(const struct tr_request *request, uint32_t index, struct tr_target **ret_target);
/* One that is the name of a component: NULL and a new reference; or bad-request, denied (a name that is not granted), not-found. */
struct tr_failure *tr_request_component(const struct tr_request *request, uint32_t index, struct tr_component **ret_component);
/* The params operation and input, from params[1] on, as a message that is a call or a task, of which nobody hears yet. NULL and the
 * caller's reference; or bad-request, no-memory. */
struct tr_failure *tr_request_call(const struct tr_request *request, struct tr_message **ret_message);
/* NULL, or denied: what others started is reached with the role `operate` only. */
struct tr_failure *tr_request_check_reach(const struct tr_request *request, struct tr_target *target);
/* Both. */
struct tr_failure *tr_request_own_target(const struct tr_request *request, uint32_t index,
                                         struct tr_target **ret_target);

/* Answers a request now, with what is in its result: dispatch.c. */
void tr_request_answer(struct tr_request *request);
/* Makes the message of a request that is answered later pending; of a notification, nothing. NULL, or why not. */
struct tr_failure *tr_request_expect(struct tr_request *request, struct tr_message *message, uint64_t timeout_ns);
/* It is not to be answered later after all: what follows from what the method returns is the answer. */
void tr_request_retract(struct tr_request *request, struct tr_message *message);
/*
 * Has a message settled by somebody else, at any time and on any thread: it is pending from before `ask` is called, under the connection's
 * own timeout. What that answers is as the functions of core have it: NULL, and the message's reference is taken; or why not, and
 * it is still the caller's. NULL, or the answer.
 */
typedef struct tr_failure *tr_request_ask(const struct tr_request *request, const void *userdata, struct tr_message *take_message);
struct tr_failure *tr_request_hand_on(struct tr_request *request, struct tr_message *take_message, tr_request_ask *ask,
                                      const void *userdata);

#endif
