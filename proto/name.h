/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_PROTO_NAME_H
#define TR_PROTO_NAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Names of every kind: parts of [A-Za-z0-9_][A-Za-z0-9_-]* joined by dots, at
 * most TR_NAME_MAX bytes. '/' is reserved.
 */
bool tr_name_is_valid(const char *name, size_t len);

/* A spawnable: "module" or "module:Name", both parts names; the whole at most
 * 2 * TR_NAME_MAX + 1 bytes. *ret_module_len is set where it is valid. */
bool tr_actor_name_is_valid(const char *name, size_t len, size_t *ret_module_len);

#endif
