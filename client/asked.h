/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CLIENT_ASKED_H
#define TR_CLIENT_ASKED_H

#include <stdbool.h>
#include <stdint.h>

#include "client/troupe.h"

/*
 * What was asked of this connection and is not answered yet.
 */
struct troupe_asked {
        struct troupe *troupe;
        struct troupe_asked *prev;
        struct troupe_asked *next;
        uint32_t id;
        bool is_waited_for;                      /* on the connection that there is now */
        troupe_cancelled_callback *on_cancelled; /* may be NULL */
        void *userdata;                          /* its own */
};

/* NULL: no memory. */
struct troupe_asked *tr_asked_new(struct troupe *troupe, uint32_t id);
struct troupe_asked *tr_asked_find(const struct troupe *troupe, uint32_t id);
/* Nobody waits for any of them any more; the program still has them. */
void tr_asked_lose_all(struct troupe *troupe);
void tr_asked_free_all(struct troupe *troupe);

/* Answers a request of the daemon with an error that is a text. 0, or -ENOMEM with nothing written. */
__attribute__((warn_unused_result)) int tr_asked_refuse(struct troupe *troupe, uint32_t id, const char *error);

#endif
