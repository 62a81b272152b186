/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace {id?, limit?}?: spans that ended lately, in the order in which they began; of one trace where `id` is given, which is its id or a
 * traceparent that has it. With the role `operate` all, else those of the same user's calls.
 */
#include "config.h"

#include "daemon/io/method.h"

#include <stdlib.h>

#include "daemon/core/trace.h"
#include "daemon/io/connection.h"
#include "daemon/io/option.h"
#include "daemon/io/server_internal.h"
#include "daemon/io/traces.h"

#define ID_BYTES 16

struct trace_options {
        struct tr_text id;
        uint32_t limit;
};

static const struct tr_option options[] = {
        { "id", TR_OPTION_TEXT, offsetof(struct trace_options, id) },
        { "limit", TR_OPTION_COUNT, offsetof(struct trace_options, limit) },
};

static bool read_digit(char character, uint8_t *ret_digit) {
        if (character >= '0' && character <= '9')
                *ret_digit = (uint8_t)(character - '0');
        else if (character >= 'a' && character <= 'f')
                *ret_digit = (uint8_t)(character - 'a' + 10);
        else
                return false;
        return true;
}

static struct tr_failure *read_id(const struct tr_text *text, uint8_t ret_id[static ID_BYTES]) {
        /* "00-<trace>-<span>-<flags>" */
        size_t at = tr_traceparent_is_valid(text->data, text->len) ? 3 : 0;
        uint8_t high, low;
        bool is_id = at > 0 || text->len == 2 * ID_BYTES;
        for (size_t i = 0; is_id && i < ID_BYTES; i++) {
                is_id = read_digit(text->data[at + 2 * i], &high) && read_digit(text->data[at + 2 * i + 1], &low);
                if (is_id)
                        ret_id[i] = (uint8_t)(high << 4 | low);
        }
        return is_id ? NULL : tr_failure_new(TR_CODE_BAD_REQUEST, "trace: the option id has to be 32 lower-case hexadecimal digits");
}

struct tr_failure *tr_method_trace(struct tr_request *request) {
        struct tr_connection *connection = request->connection;
        struct trace_options chosen = { 0 };
        struct tr_span_record *records;
        uint8_t id[ID_BYTES];
        size_t count;
        struct tr_failure *failure = TR_OPTIONS_READ(request, 0, options, &chosen);
        if (!failure && chosen.id.data)
                failure = read_id(&chosen.id, id);
        if (failure)
                return failure;

        const struct tr_traces_wanted wanted = {
                .trace = chosen.id.data ? id : NULL,
                .everybodys = connection->roles & TR_ROLE_OPERATE,
                .uid = connection->peer.uid,
                .limit = chosen.limit,
        };
        if (tr_traces_find(connection->server->traces, &wanted, &records, &count) < 0)
                return tr_failure_new(TR_CODE_NO_MEMORY, "trace: out of memory");
        tr_write_array(request->result, (uint32_t)count);
        for (size_t i = 0; i < count; i++) {
                tr_write_map(request->result, tr_span_pairs(&records[i]));
                tr_span_write(&records[i], request->result);
        }
        free(records);
        return NULL;
}
