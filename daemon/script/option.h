/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_OPTION_H
#define TR_SCRIPT_OPTION_H

#include <lua.h>
#include <stddef.h>

/*
 * Tables of options that library functions take: which keys there are, of what type, and where their values go.
 */
enum tr_script_option_type {
        TR_SCRIPT_OPTION_BOOL,  /* bool */
        TR_SCRIPT_OPTION_COUNT, /* uint32_t, above 0 */
        TR_SCRIPT_OPTION_SIZE,  /* uint64_t, bytes: an integer, or text with a unit; above 0 */
        TR_SCRIPT_OPTION_TIME,  /* uint64_t, nanoseconds: milliseconds, or text with a unit; above 0 */
        TR_SCRIPT_OPTION_LABEL, /* const char *: one line of UTF-8 */
        TR_SCRIPT_OPTION_NAME,  /* const char * */
        TR_SCRIPT_OPTION_TEXT,  /* const char *: what can be an entity's id */
        TR_SCRIPT_OPTION_VERSION, /* uint64_t: an integer of 0 or above */
        TR_SCRIPT_OPTION_MOMENT, /* int64_t, milliseconds since 1970: that, a timestamp, or RFC 3339 text */
        TR_SCRIPT_OPTION_TABLE, /* bool: it is there, and is a table, which the caller looks at */
        TR_SCRIPT_OPTION_MAP,   /* a table of `members`, which go into the same destination */
};

/* What is wanted where a text has to be an id, or like one. */
#define TR_SCRIPT_TEXT_WANTED "text of 1 to 256 bytes of UTF-8 without control characters"

struct tr_script_option {
        const char *key;
        enum tr_script_option_type type;
        size_t offset; /* of the destination in the function's structure */
        const struct tr_script_option *members;
        size_t members_count;
};

/* Reads the table at an index. Raises `bad-request` for `function`, naming the option that is unknown or has a bad value. Texts are held by
 * the table that they were read from. */
void tr_script_options_read(lua_State *L, int index, const char *function, const struct tr_script_option *known,
                            size_t known_count, void *destination);

#define TR_SCRIPT_OPTIONS_READ(L, index, function, known, destination) \
        tr_script_options_read(L, index, function, known, sizeof(known) / sizeof((known)[0]), destination)

#endif
