/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CONTRACT_URI_H
#define TR_CONTRACT_URI_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a URI, its NUL counted. */
#define TR_URI_MAX 1024

/* What a reference, which has no fragment, means where the base is in force (RFC 3986, 5.2); the base may be empty.
 * False where that is too long. */
bool tr_uri_resolve(const char *base, const char *reference, size_t len, char ret_uri[static TR_URI_MAX]);

#endif
