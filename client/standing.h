/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CLIENT_STANDING_H
#define TR_CLIENT_STANDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/failure.h"
#include "client/incoming.h"
#include "client/pending.h"
#include "client/troupe.h"

struct tr_request;

/*
 * What a connection and its daemon have agreed on, and what therefore goes on after the answer: each is a request, and
 * is made again on every later connection.
 */
enum tr_standing_kind {
        TR_STANDING_HELLO,        /* the program's own, "" */
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
        bool is_asked;  /* on the present connection */
        union {
                troupe_event_callback *on_event;
                troupe_message_callback *on_message;
                troupe_operation_callback *on_operation;
        };
        troupe_cancelled_callback *on_cancelled; /* may be NULL */
        void *userdata;
        struct troupe_pending *pending; /* its request, until that ends */
        struct tr_incoming_queue held;  /* what came for it before its answer */
        struct tr_failure refusal;      /* why it could not be had again */
        const uint8_t *params;          /* what it was asked for with: behind the name */
        size_t params_bytes;
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
__attribute__((warn_unused_result)) int tr_standing_add(struct tr_request *request, const struct tr_standing *like,
                                                        const char *name);
/* The one that is in force; NULL where there is none. */
const struct tr_standing *tr_standing_find(const struct troupe *troupe, enum tr_standing_kind kind, const char *name,
                                           size_t length);
/* Where none is: the one that is being agreed on, and will be in force first; NULL where there is none either. */
struct tr_standing *tr_standing_find_coming(struct troupe *troupe, enum tr_standing_kind kind, const char *name,
                                            size_t length);
/* The method that asks for it. */
const char *tr_standing_method(const struct tr_standing *standing);
/* This request is about it. */
void tr_standing_bind(struct tr_standing *standing, struct troupe_pending *pending);

/* It was asked for on a new connection; where that was refused it is in force no more, and to be told of. */
void tr_standing_answered_again(struct troupe *troupe, struct troupe_pending *pending, enum tr_outcome outcome,
                                const struct troupe_value *value);
bool tr_standing_has_refused(const struct tr_standing_list *list);
/* Takes one of those out of the list, for tr_standing_free(); NULL where there is none. */
struct tr_standing *tr_standing_take_refused(struct tr_standing_list *list);
void tr_standing_free(struct tr_standing *standing);

void tr_standing_deinit(struct tr_standing_list *list);

#endif
