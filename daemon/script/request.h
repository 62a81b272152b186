/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_REQUEST_H
#define TR_SCRIPT_REQUEST_H

#include <lua.h>
#include <stddef.h>

struct tr_failure;
struct tr_message;

/*
 * What Lua code asks core for that no actor answers: a call, a task, an entity. It is a message that is never posted, whose answer
 * settles a promise. All of it protected.
 */

/* Pushes the promise, and answers the message, whose reference is the caller's: it names what is asked for, and has the first `bytes` of
 * the scratch as its argument (0: none). Raises `no-memory`. */
struct tr_message *tr_script_request_new(lua_State *L, const char *name, size_t name_len, size_t bytes);
/* Core has taken it (NULL), or not, and then its reference is taken here: the answer comes through the mailbox, one way or the other. */
void tr_script_request_made(struct tr_message *message, struct tr_failure *take_failure);

/* The name at an index. Raises `bad-request` for the function. */
const char *tr_script_request_check_name(lua_State *L, int index, const char *function, const char *wanted, size_t *ret_len);

/* Encodes the member `where` of the table at an index, which selects entities, behind what is in the scratch. How many bytes; 0: it
 * selects nothing. */
size_t tr_script_request_encode_where(lua_State *L, int options);

#endif
