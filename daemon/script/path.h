/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_PATH_H
#define TR_SCRIPT_PATH_H

#include <lua.h>
#include <stdint.h>

#include "proto/limits.h"

/* TR_NESTING_MAX in a sentence. */
#define TR_NESTING_TEXT "128"
_Static_assert(TR_NESTING_MAX == 128, "the text says another number");

/*
 * Where in nested values the codec is. Going down writes two numbers, and nothing else is done about it: the text is
 * made from the stack where a sentence needs it.
 */
struct tr_path_step {
        int value;      /* stack index of the value; where it is not in an array, its key is just below */
        uint32_t place; /* in an array, from 1; 0: it is a map's */
};

struct tr_path {
        const char *what; /* how the values are called: NULL for arguments, else for instance "the answer" */
        uint32_t root;    /* which of them, from 1 */
        int depth;        /* open containers */
        struct tr_path_step steps[TR_NESTING_MAX];
};

/* Pushes the text for the value `depth` steps down ("handlers.onDone", "items[3]", "argument 2"), and answers it. */
const char *tr_path_push(lua_State *L, const struct tr_path *path, int depth);

#endif
