/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CLIENT_STANDING_H
#define TR_CLIENT_STANDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/troupe.h"

struct tr_request;

/*
 * What a connection and its daemon have agreed on, and what therefore comes without being asked for: each is a request
 * that goes on after its answer.
 */
enum tr_standing_kind {
        TR_STANDING_SUBSCRIPTION, /* its name is the topic */
        TR_STANDING_LISTENER,     /* "" */
        TR_STANDING_SERVICE,      /* the component */
};

struct tr_standing {
        struct tr_standing *prev;
        struct tr_standing *next;
        enum tr_standing_kind kind;
        bool is_end;    /* the request that ends one */
        bool is_agreed; /* the daemon has answered */
        union {
                troupe_event_callback *on_event;
                troupe_message_callback *on_message;
                troupe_operation_callback *on_operation;
        };
        troupe_cancelled_callback *on_cancelled; /* may be NULL */
        void *userdata;
        char name[]; /* two of a kind never have one name: the later takes the earlier's place */
};

/* Zeroed is empty. */
struct tr_standing_list {
        struct tr_standing *first;
        struct tr_standing *last;
};

/*
 * Makes one of a request whose params are written, the last thing before it is sent; `like` has its kind, is_end and
 * callbacks. It is in force once the daemon has agreed, and gone where it does not; what it replaces, or ends, is in
 * force until then. 0 or -ENOMEM.
 */
__attribute__((warn_unused_result)) int tr_standing_add(struct tr_request *request, const struct tr_standing *like, const char *name);
/* The one that is in force; NULL where there is none. */
const struct tr_standing *tr_standing_find(const struct troupe *troupe, enum tr_standing_kind kind, const char *name,
                                           size_t length);
void tr_standing_deinit(struct tr_standing_list *list);

#endif
