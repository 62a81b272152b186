/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_START_H
#define TR_IO_START_H

#include <stdbool.h>

#include "daemon/io/option.h"
#include "daemon/io/request.h"

struct tr_message;
struct tr_session;
struct tr_system;
struct tr_target;

/*
 * What starting an actor and starting a pool have in common. Loop thread.
 */

/* The texts of a request with a NUL behind each, for core; those that were not given are NULL. */
struct tr_start_texts {
        char *actor;
        char *name;
        char *publish;
};

/* NULL, or no-memory. To be deinited in both cases. */
struct tr_failure *tr_start_texts_copy(struct tr_start_texts *texts, const struct tr_text *actor, const struct tr_text *name,
                                       const struct tr_text *publish);
void tr_start_texts_deinit(struct tr_start_texts *texts);

/* Starts something in a session, as tr_actor_spawn() does: takes the message that is answered when it has started. */
typedef struct tr_failure *tr_start_fn(struct tr_system *system, struct tr_session *session, const void *options,
                                       struct tr_message *take_message, struct tr_target **ret_target,
                                       struct tr_target **ret_holder);

/*
 * Has it started in the connection's session, or the daemon's (`detach`). The message (NULL: there was no memory for it) becomes the
 * pending request before that, since it may be answered before this returns; a cancel or a deadline settles it, and kills what
 * it started. With `if_absent` the answer is the handle of who holds the name, where that is why nothing was started.
 */
struct tr_failure *tr_start(struct tr_request *request, tr_start_fn *start, const void *options, bool detach, bool if_absent,
                            struct tr_message *message);

#endif
