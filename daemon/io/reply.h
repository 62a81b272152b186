/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_REPLY_H
#define TR_IO_REPLY_H

#include "daemon/core/message.h"
#include "daemon/io/connection.h"
#include "daemon/io/chosen.h"
#include "daemon/io/request.h"

/*
 * `reply`: requests of clients that must not block. They are answered nil as soon as they are pending, and the outcome
 * comes as a notification, [error, result] being what the client's method is called with.
 *
 * Such a request is pending like any other, and counts like one, but under an id that no request can have: the client
 * may use its own again. Its asker is the connection's reply_asker, and what was chosen is its ask.data.
 */
extern const struct tr_asker_ops tr_reply_asker_ops;

/* As tr_connection_sign(), for a message whose outcome is a notification. Loop thread. */
struct tr_failure *tr_reply_sign(struct tr_connection *connection, struct tr_message *message,
                                 const struct tr_chosen_options *options, uint64_t timeout_ns);
/* As tr_request_expect(): the request is answered when this returns NULL. */
struct tr_failure *tr_reply_expect(struct tr_request *request, struct tr_message *message,
                                   const struct tr_chosen_options *options, uint64_t timeout_ns);
/* Of one that was pending, and that the caller has settled and taken out. */
void tr_reply_reject_locked(struct tr_connection *connection, struct tr_message *message, struct tr_failure *failure,
                            enum tr_ran ran) TR_REQUIRES(connection->lock);

#endif
