/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_POST_H
#define TR_IO_POST_H

#include <stdint.h>

#include "daemon/io/chosen.h"
#include "daemon/io/request.h"

/* What `send` and `ask` have in common: target, handler, args, as a message in the batch. `timeout_ns` is for an ask,
 * which is answered by its handler, as a notification where `reply` chooses a method; a send that wants an answer gets
 * nil when it is in the mailbox. NULL, or why not. */
struct tr_failure *tr_post_ask(struct tr_request *request, uint64_t timeout_ns, const struct tr_chosen_options *reply);
struct tr_failure *tr_post_send(struct tr_request *request);

#endif
