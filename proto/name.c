/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names. Only ASCII, and decided byte by byte: what is a name must not depend
 * on a locale, since names become file paths, socket texts and metric labels.
 */
#include "proto/name.h"

#include <string.h>

#include "proto/limits.h"

static bool begins_part(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool tr_name_is_valid(const char *name, size_t len) {
        bool in_part = false;

        if (len > TR_NAME_MAX)
                return false;
        for (size_t i = 0; i < len; i++) {
                if (begins_part(name[i]) || (in_part && name[i] == '-'))
                        in_part = true;
                else if (in_part && name[i] == '.')
                        in_part = false;
                else
                        return false;
        }
        return in_part;
}

bool tr_actor_name_is_valid(const char *name, size_t len, size_t *ret_module_len) {
        const char *colon = len > 0 ? memchr(name, ':', len) : NULL;
        size_t module_len = colon ? (size_t)(colon - name) : len;

        if (!tr_name_is_valid(name, module_len))
                return false;
        if (colon && !tr_name_is_valid(colon + 1, len - module_len - 1))
                return false;
        *ret_module_len = module_len;
        return true;
}
