/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/json.h"

#include <stdio.h>
#include <string.h>

#include "proto/utf8.h"

static char *put(char *at, const char *text, size_t len) {
        memcpy(at, text, len);
        return at + len;
}

char *tr_json_escape(char *at, const char *end, const char *text, size_t len) {
        for (size_t i = 0; i < len && end - at >= TR_JSON_STEP_MAX;) {
                size_t bytes = tr_utf8_character(text + i, len - i);
                unsigned char c = (unsigned char)text[i];

                if (bytes == 0) {
                        at = put(at, "\xef\xbf\xbd", 3);
                } else if (c == '"' || c == '\\') {
                        *at++ = '\\';
                        *at++ = text[i];
                } else if (c == '\n') {
                        at = put(at, "\\n", 2);
                } else if (c < 0x20 || c == 0x7f) {
                        at += snprintf(at, TR_JSON_STEP_MAX, "\\u%04x", (unsigned int)c);
                } else {
                        at = put(at, text + i, bytes);
                }
                i += bytes ? bytes : 1;
        }
        return at;
}
