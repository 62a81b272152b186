/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_PROTO_CODE_H
#define TR_PROTO_CODE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The error codes of the protocol, with what `ran` is where nobody knows
 * better, whose mistake it is, and with what the command exits.
 *
 * X(NAME, "text", default ran, caller's mistake, exit code)
 */
#define TR_CODES(X)                                                 \
        X(BAD_FRAME, "bad-frame", NO, false, 3)                     \
        X(BAD_REQUEST, "bad-request", NO, true, 2)                  \
        X(UNKNOWN_METHOD, "unknown-method", NO, true, 4)            \
        X(TOO_LARGE, "too-large", NO, true, 2)                      \
        X(NOT_SENDABLE, "not-sendable", NO, true, 2)                \
        X(DENIED, "denied", NO, true, 5)                            \
        X(BUSY, "busy", NO, false, 7)                               \
        X(LIMIT, "limit", NO, false, 7)                             \
        X(NO_MEMORY, "no-memory", NO, false, 7)                     \
        X(TAKEN, "taken", NO, false, 7)                             \
        X(NOT_FOUND, "not-found", NO, true, 4)                      \
        X(LOAD, "load", NO, false, 4)                               \
        X(NO_SUCH_HANDLER, "no-such-handler", NO, true, 4)          \
        X(MAILBOX_FULL, "mailbox-full", NO, false, 7)               \
        X(NOT_RUNNING, "not-running", NO, false, 4)                 \
        X(STOPPED, "stopped", MAYBE, false, 1)                      \
        X(KILLED, "killed", MAYBE, false, 1)                        \
        X(FAULT, "fault", YES, false, 1)                            \
        X(TIMEOUT, "timeout", MAYBE, false, 124)                    \
        X(CANCELLED, "cancelled", MAYBE, false, 130)                \
        X(CONTRACT, "contract", NO, true, 1)                        \
        X(REFUSED, "refused", YES, false, 1)                        \
        X(CONFLICT, "conflict", YES, false, 1)                      \
        X(ADDRESSEE, "addressee", NO, false, 4)                     \
        X(ABANDONED, "abandoned", MAYBE, false, 124)                \
        X(UNDELIVERABLE, "undeliverable", MAYBE, false, 1)          \
        X(LOOP, "loop", NO, false, 7)                               \
        X(STORE, "store", NO, false, 7)                             \
        X(INTERNAL, "internal", MAYBE, false, 1)                    \
        X(SHUTTING_DOWN, "shutting-down", NO, false, 7)             \
        X(DISCONNECTED, "disconnected", MAYBE, false, 3)

enum tr_code {
#define TR_CODE_ENUM(name, text, ran, caller, exit) TR_CODE_##name,
        TR_CODES(TR_CODE_ENUM)
#undef TR_CODE_ENUM
        TR_CODES_COUNT,
};

/* What a caller has to know of a failed request: was it handed over? */
enum tr_ran {
        TR_RAN_NO,    /* never handed over: safe to do again */
        TR_RAN_MAYBE, /* handed over, and nobody knows */
        TR_RAN_YES,   /* ran to its end or to its fault */
};

const char *tr_code_text(enum tr_code code);
enum tr_ran tr_code_ran(enum tr_code code);
/* Whether the caller's own mistake (kind 1 of the pair form) or not (kind 0). */
bool tr_code_is_callers(enum tr_code code);
int tr_code_exit(enum tr_code code);
/* True, with *ret_code set, where the text is a code. */
bool tr_code_parse(const char *text, size_t len, enum tr_code *ret_code);

/* "no", "maybe", "yes". */
const char *tr_ran_text(enum tr_ran ran);
bool tr_ran_parse(const char *text, size_t len, enum tr_ran *ret_ran);

#endif
