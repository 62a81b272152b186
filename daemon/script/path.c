/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place in nested values as people write it in Lua: `handlers.onDone`, `items[3]`, `argument 2["a key"].x`.
 *
 * The text has a bound, because nesting and keys are the program's; what does not fit is cut off, and that is shown.
 */
#include "daemon/script/path.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "proto/utf8.h"

#define TEXT_MAX 200
/* How much of one key is shown. */
#define KEY_MAX 40

struct text {
        char data[TEXT_MAX + sizeof("...")];
        size_t len; /* beyond TEXT_MAX: cut off */
};

static void __attribute__((format(printf, 2, 3))) add(struct text *text, const char *format, ...) {
        size_t room = text->len <= TEXT_MAX ? TEXT_MAX + 1 - text->len : 0;
        va_list arguments;

        va_start(arguments, format);
        text->len += (size_t)vsnprintf(room ? text->data + text->len : NULL, room, format, arguments);
        va_end(arguments);
}

static bool is_identifier(const char *key, size_t len) {
        if (len == 0 || len > KEY_MAX || isdigit((unsigned char)key[0]))
                return false;
        for (size_t i = 0; i < len; i++)
                if (!isalnum((unsigned char)key[i]) && key[i] != '_')
                        return false;
        return true;
}

/* In quotes; what is no text is written as Lua's escapes. */
static void add_quoted(struct text *text, const char *key, size_t len) {
        bool is_text = tr_utf8_is_valid(key, len);

        add(text, "[\"");
        for (size_t i = 0; i < len && text->len <= TEXT_MAX; i++) {
                unsigned char c = (unsigned char)key[i];

                if (i >= KEY_MAX && (c & 0xc0) != 0x80) {
                        add(text, "...");
                        break;
                }
                if (c < 0x20 || c == 0x7f || (c >= 0x80 && !is_text))
                        add(text, "\\%03u", c);
                else
                        add(text, c == '"' || c == '\\' ? "\\%c" : "%c", c);
        }
        add(text, "\"]");
}

static void add_key(lua_State *L, struct text *text, int key) {
        const char *string;
        size_t len;

        switch (lua_type(L, key)) {
        case LUA_TSTRING:
                string = lua_tolstring(L, key, &len);
                if (is_identifier(string, len))
                        add(text, "%s%s", text->len > 0 ? "." : "", string);
                else
                        add_quoted(text, string, len);
                break;
        case LUA_TNUMBER:
                if (lua_isinteger(L, key))
                        add(text, "[%lld]", (long long)lua_tointeger(L, key));
                else
                        add(text, "[%.14g]", lua_tonumber(L, key));
                break;
        case LUA_TBOOLEAN:
                add(text, "[%s]", lua_toboolean(L, key) ? "true" : "false");
                break;
        default:
                add(text, "[?]");
        }
}

const char *tr_path_push(lua_State *L, const struct tr_path *path, int depth) {
        struct text text = { .len = 0 };

        if (path->what && depth == 0)
                add(&text, "%s", path->what);
        else if (!path->what && (depth == 0 || path->root > 1))
                add(&text, "argument %u", (unsigned)path->root);
        for (int i = 0; i < depth && text.len <= TEXT_MAX; i++) {
                if (path->steps[i].place > 0)
                        add(&text, "[%u]", (unsigned)path->steps[i].place);
                else
                        add_key(L, &text, path->steps[i].value - 1);
        }
        if (text.len > TEXT_MAX) {
                /* the last character may not be whole */
                for (text.len = TEXT_MAX; text.len > 0 && ((unsigned char)text.data[text.len - 1] & 0xc0) == 0x80;)
                        text.len--;
                if (text.len > 0 && (unsigned char)text.data[text.len - 1] >= 0xc0)
                        text.len--;
                memcpy(text.data + text.len, "...", sizeof("..."));
        }
        return lua_pushstring(L, text.data);
}
