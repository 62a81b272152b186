/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extension types that hold MessagePack themselves. A payload must be exactly
 * one value of the shape that the protocol gives it, with nothing behind it.
 */
#include <string.h>

#include "proto/value.h"

bool tr_message_decode(const uint8_t *payload, size_t len, struct tr_handle *ret_handle, const char **ret_handler,
                       size_t *ret_handler_len) {
        struct tr_reader reader = tr_reader(payload, len);
        struct tr_token pair, handle, handler;

        if (tr_read(&reader, &pair) || pair.type != TR_ARRAY || pair.count != 2)
                return false;
        if (tr_read(&reader, &handle) || handle.type != TR_BIN || handle.len != TR_HANDLE_BYTES)
                return false;
        if (tr_read(&reader, &handler) || !tr_token_is_text(&handler) || reader.at != reader.end)
                return false;

        memcpy(ret_handle->bytes, handle.data, TR_HANDLE_BYTES);
        *ret_handler = (const char *)handler.data;
        *ret_handler_len = handler.len;
        return true;
}

bool tr_instance_decode(const uint8_t *payload, size_t len, const char **ret_name, size_t *ret_name_len,
                        struct tr_reader *ret_fields, uint32_t *ret_pairs) {
        struct tr_reader reader = tr_reader(payload, len);
        struct tr_token pair, name, fields;

        if (tr_read(&reader, &pair) || pair.type != TR_ARRAY || pair.count != 2)
                return false;
        if (tr_read(&reader, &name) || !tr_token_is_text(&name))
                return false;
        /* As everywhere, stock clients may send an empty map as an empty array. */
        if (tr_read(&reader, &fields) || !(fields.type == TR_MAP || (fields.type == TR_ARRAY && fields.count == 0)))
                return false;

        *ret_name = (const char *)name.data;
        *ret_name_len = name.len;
        *ret_fields = reader;
        *ret_pairs = fields.count;
        return true;
}
