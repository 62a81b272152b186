/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hello {client?, protocol?, errors?, values?, timeout?}: how the connection wants to be answered from now on, and
 * what it may know of the daemon. `client` is for people who read a capture; nothing depends on it.
 */
#include "config.h"

#include "daemon/io/method.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "daemon/base/clock.h"
#include "daemon/core/system.h"
#include "daemon/io/connection.h"
#include "daemon/io/option.h"
#include "daemon/io/server_internal.h"
#include "proto/limits.h"

struct hello_options {
        struct tr_text client;
        struct tr_text errors;
        struct tr_text values;
        int64_t protocol;
        uint64_t timeout_ns;
};

static const struct tr_option options[] = {
        { "client", TR_OPTION_TEXT, offsetof(struct hello_options, client) },
        { "protocol", TR_OPTION_INTEGER, offsetof(struct hello_options, protocol) },
        { "errors", TR_OPTION_TEXT, offsetof(struct hello_options, errors) },
        { "values", TR_OPTION_TEXT, offsetof(struct hello_options, values) },
        { "timeout", TR_OPTION_TIME, offsetof(struct hello_options, timeout_ns) },
};

static struct tr_failure *unknown_protocol(int64_t protocol) {
        struct tr_failure *failure =
                tr_failure_new(TR_CODE_BAD_REQUEST, "protocol %" PRId64 " is not known here", protocol);
        struct tr_writer supported = TR_WRITER_INIT;
        tr_write_array(&supported, 1);
        tr_write_int(&supported, TR_PROTOCOL_VERSION);
        if (!tr_writer_error(&supported))
                tr_failure_add_raw(failure, "supported", supported.data, supported.len);
        tr_writer_deinit(&supported);
        return failure;
}

static struct tr_failure *read_form(const struct hello_options *chosen, struct tr_response_form *form) {
        if (tr_text_equals(&chosen->errors, "pair"))
                form->errors = TR_ERRORS_PAIR;
        else if (tr_text_equals(&chosen->errors, "map"))
                form->errors = TR_ERRORS_MAP;
        else if (tr_text_equals(&chosen->errors, "text"))
                form->errors = TR_ERRORS_TEXT;
        else if (chosen->errors.data)
                return tr_failure_new(TR_CODE_BAD_REQUEST, "hello: the option errors has to be pair, map or text");

        if (tr_text_equals(&chosen->values, "plain"))
                form->values = TR_FORM_PLAIN;
        else if (tr_text_equals(&chosen->values, "typed"))
                form->values = TR_FORM_TYPED;
        else if (chosen->values.data)
                return tr_failure_new(TR_CODE_BAD_REQUEST, "hello: the option values has to be plain or typed");
        return NULL;
}

static void write_number(struct tr_writer *writer, const char *key, uint64_t value) {
        /* Languages whose numbers are all floats read no larger ones exactly. */
        const uint64_t max = (UINT64_C(1) << 53) - 1;
        tr_write_text(writer, key);
        tr_write_uint(writer, value < max ? value : max);
}

static void write_limits(struct tr_writer *writer, const struct tr_server *server) {
        const struct tr_server_limits *own = &server->limits;
        const struct tr_system_limits *core = &server->system->limits;
        tr_write_map(writer, 17);
        write_number(writer, "actors", core->actors);
        write_number(writer, "actors_per_user", core->actors_per_user);
        write_number(writer, "connections", own->connections);
        write_number(writer, "connections_per_user", own->connections_per_user);
        write_number(writer, "requests", own->requests);
        write_number(writer, "frame", own->frame_bytes);
        write_number(writer, "output", own->output_bytes);
        write_number(writer, "stalled", own->stalled_ns / TR_NS_PER_MS);
        write_number(writer, "heap", core->heap_bytes);
        write_number(writer, "heap_max", core->heap_max_bytes);
        write_number(writer, "mailbox", core->mailbox);
        write_number(writer, "mailbox_bytes", core->mailbox_bytes);
        write_number(writer, "async", core->async);
        write_number(writer, "nesting", own->nesting);
        write_number(writer, "queue", own->queue);
        write_number(writer, "slow", core->slow_ns / TR_NS_PER_MS);
        if (core->memory_bytes) {
                write_number(writer, "memory", core->memory_bytes);
        } else {
                tr_write_text(writer, "memory");
                tr_write_nil(writer);
        }
}

static void write_you(struct tr_writer *writer, const struct tr_connection *connection) {
        tr_write_map(writer, 4);
        write_number(writer, "uid", connection->peer.uid);
        write_number(writer, "gid", connection->peer.gid);
        write_number(writer, "pid", (uint64_t)connection->peer.pid);
        tr_write_text(writer, "roles");
        tr_write_array(writer, (uint32_t)__builtin_popcount(connection->roles));
        for (unsigned int role = 1; role < TR_ROLE_ALL; role <<= 1)
                if (connection->roles & role)
                        tr_write_text(writer, tr_role_text((enum tr_role)role));
}

struct tr_failure *tr_method_hello(struct tr_request *request) {
        struct tr_connection *connection = request->connection;
        struct hello_options chosen = { .protocol = TR_PROTOCOL_VERSION, .timeout_ns = connection->timeout_ns };
        struct tr_response_form form = connection->form;
        struct tr_failure *failure = TR_OPTIONS_READ(request, 0, options, &chosen);
        if (!failure && chosen.protocol != TR_PROTOCOL_VERSION)
                failure = unknown_protocol(chosen.protocol);
        if (!failure)
                failure = read_form(&chosen, &form);
        if (failure)
                return failure;
        connection->form = form;
        connection->timeout_ns = chosen.timeout_ns;
        /* relaxed: what is just being posted may have either form */
        atomic_store_explicit(&connection->call_form, (uint8_t)form.values, memory_order_relaxed);

        struct tr_writer *result = request->result;
        tr_write_map(result, 5);
        tr_write_text(result, "server");
        tr_write_text(result, "trouped");
        tr_write_text(result, "version");
        tr_write_text(result, PACKAGE_VERSION);
        tr_write_text(result, "protocol");
        tr_write_int(result, TR_PROTOCOL_VERSION);
        tr_write_text(result, "limits");
        write_limits(result, connection->server);
        tr_write_text(result, "you");
        write_you(result, connection);
        return NULL;
}
