/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_FAILURE_H
#define TR_CORE_FAILURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/code.h"
#include "proto/value.h"

/*
 * Why something failed: one of the protocol's codes, a sentence, what `ran` is,
 * and what the code adds (traceback, actor, handler, kind, value, path, ...).
 *
 * Immutable once it is shared; reference-counted, any thread. Making one never
 * fails: where memory is short the answer is an immortal `no-memory` failure,
 * so that nobody who is owed an answer goes without.
 */
struct tr_failure {
        _Atomic uint32_t refs;
        enum tr_code code;
        enum tr_ran ran;
        char *message;
        uint32_t extras;            /* pairs in `extra` */
        struct tr_writer extra;     /* key, value, key, value, ... as MessagePack in the typed form */
};

struct tr_failure *tr_failure_new(enum tr_code code, const char *format, ...)
        __attribute__((format(printf, 2, 3), returns_nonnull));
struct tr_failure *tr_failure_ref(struct tr_failure *failure);
/* NULL is fine. */
void tr_failure_unref(struct tr_failure *failure);

/* Only before it is shared. */
void tr_failure_set_ran(struct tr_failure *failure, enum tr_ran ran);
/* Only before it is shared. A text that is not UTF-8 goes as bin. What does not fit in memory is left out. */
void tr_failure_add_text(struct tr_failure *failure, const char *key, const char *text, size_t len);
void tr_failure_add_raw(struct tr_failure *failure, const char *key, const void *value, size_t bytes);

/* A text that was added, borrowed and without a NUL; false where there is none of that key. */
bool tr_failure_find_text(const struct tr_failure *failure, const char *key, const char **ret_text, size_t *ret_len);

/* Writes it as the map form (`code`, `message`, `ran`, extras), with `ran` as the asker it goes to has it. */
void tr_failure_write_map(const struct tr_failure *failure, enum tr_ran ran, struct tr_writer *writer);

#endif
