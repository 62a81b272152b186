/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_ENTITY_H
#define TR_CORE_ENTITY_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/store.h"

struct tr_component;
struct tr_failure;
struct tr_message;

/*
 * A component's entities: what its operations ask the store for themselves.
 */

/* What is asked. All of it is borrowed, and copied where it is kept. */
struct tr_entity_request {
        enum tr_store_kind kind;     /* TR_STORE_GET, TR_STORE_WRITE (the document takes the place of what is there), TR_STORE_DELETE,
                                      * TR_STORE_LIST */
        const char *id;              /* id_len bytes; NULL: a new one, where one is written, and none of a list */
        size_t id_len;
        const uint8_t *document;     /* of a write: one value, typed */
        size_t document_bytes;
        uint64_t expect;             /* of a write or a delete: the version that is there; TR_STORE_ANY */
        const uint8_t *where;        /* of a list: a map, typed; NULL: anything */
        size_t where_bytes;
        const char *sort;            /* sort_len bytes; NULL: the id */
        size_t sort_len;
        const char *after;           /* after_len bytes; NULL: from the first on */
        size_t after_len;
        uint64_t limit;              /* 0: none */
};

/*
 * The message, which nobody has posted, is settled with what the store answers: the document or nil (GET), the document as it is then
 * (WRITE), whether it was there (DELETE), an array of documents (LIST); or `conflict`, `contract`, `not-sendable`, `not-found`,
 * `too-large`, `store`. NULL, and its reference is taken; or why not (bad-request, store, no-memory), to be told with ran "no", and it is
 * still the caller's. Any thread, no lock held; it may be settled before this returns.
 */
struct tr_failure *tr_entity_ask(struct tr_component *component, const struct tr_entity_request *request,
                                 struct tr_message *take_message);

#endif
