/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CONTRACT_DOCUMENT_H
#define TR_CONTRACT_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/error.h"
#include "proto/value.h"

/*
 * Values as JSON text, the form in which they are kept: one that a person can read, and that comes back as it went. Values are
 * typed MessagePack that the scanner has passed.
 *
 * The same value always is the same text: members are in the order of their names' bytes, numbers are as short as they can be, and
 * a float has a point or an exponent. What JSON does not have is refused.
 */
enum {
        TR_DOCUMENT_NO_JSON = 1, /* *ret_path and *ret_reason say what */
        TR_DOCUMENT_BAD = 2,     /* the text is no JSON, or holds what we do not have */
};

/* Appends one value's text. 0; TR_DOCUMENT_NO_JSON with *ret_path, a JSON Pointer that the caller frees, and *ret_reason, static, what
 * follows on it; or -ENOMEM. After anything but 0 the text is of no use. */
TR_MUST_CHECK int tr_document_write(const void *value, size_t bytes, struct tr_writer *text, char **ret_path,
                                    const char **ret_reason);
/* Appends the value that a text stands for. 0, TR_DOCUMENT_BAD or -ENOMEM. */
TR_MUST_CHECK int tr_document_read(const char *text, size_t len, struct tr_writer *value);

/*
 * Appends a map: the fields of `over` (a map), laid over those of `base` (a map; NULL: none). With `removes` a nil in `over` takes the
 * field away. Fields whose names are in `without` (NULL-terminated; may be NULL) are left out of both. 0, TR_DOCUMENT_NO_JSON as
 * above (a name is no text), or -ENOMEM.
 */
struct tr_document_layers {
        const void *base;
        size_t base_bytes;
        const void *over;
        size_t over_bytes;
        bool removes;
        const char *const *without;
};
TR_MUST_CHECK int tr_document_lay(const struct tr_document_layers *layers, struct tr_writer *writer, char **ret_path,
                                  const char **ret_reason);

#endif
