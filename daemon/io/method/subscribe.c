/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subscribe topic, {method?, params?, rate?}?, and unsubscribe topic: from here on, and until then, what happens comes
 * as notifications. Subscribing to a topic again replaces what was chosen before.
 */
#include "config.h"

#include "daemon/io/method.h"

#include "daemon/io/chosen.h"
#include "daemon/io/connection.h"
#include "daemon/io/feed.h"
#include "daemon/io/option.h"
#include "daemon/io/server_internal.h"

struct subscribe_options {
        struct tr_chosen_options chosen;
        uint32_t rate;
};

static const struct tr_option options[] = {
        TR_CHOSEN_OPTIONS(struct subscribe_options, chosen),
        { "rate", TR_OPTION_COUNT, offsetof(struct subscribe_options, rate) },
};

static struct tr_failure *read_topic(const struct tr_request *request, enum tr_topic *ret_topic) {
        const struct tr_token *token = &request->params[0].token;
        if (tr_token_is_text(token) && tr_topic_parse((const char *)token->data, token->len, ret_topic))
                return NULL;
        return tr_request_bad_param(request, 0, "one of lifecycle, trace, log, task, refused");
}

struct tr_failure *tr_method_subscribe(struct tr_request *request) {
        struct tr_connection *connection = request->connection;
        struct subscribe_options chosen = { 0 };
        struct tr_chosen method;
        enum tr_topic topic;
        struct tr_failure *failure = read_topic(request, &topic);
        if (!failure)
                failure = TR_OPTIONS_READ(request, 1, options, &chosen);
        if (!failure)
                failure = tr_chosen_init(&method, &chosen.chosen, "event");
        if (failure)
                return failure;
        return tr_feed_subscribe(connection->server->feed, connection, topic, &method, chosen.rate);
}

struct tr_failure *tr_method_unsubscribe(struct tr_request *request) {
        enum tr_topic topic;
        struct tr_failure *failure = read_topic(request, &topic);
        if (!failure)
                tr_feed_unsubscribe(request->connection->server->feed, request->connection, topic);
        return failure;
}
