/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes out to a client, as lists and sums.
 */
#include "config.h"

#include "daemon/io/outgoing.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/io/callee.h"

void tr_outgoing_init(struct tr_outgoing *outgoing) {
        memset(outgoing, 0, sizeof(*outgoing));
        atomic_init(&outgoing->congested, false);
        tr_list_init(&outgoing->waiting);
}

bool tr_outgoing_has_room(const struct tr_outgoing *outgoing, const struct tr_output *output, bool ask, uint64_t bytes) {
        uint64_t held = tr_output_waiting(output) + outgoing->waiting_bytes + outgoing->calls.bytes;
        return held + bytes <= output->max_bytes && (!ask || outgoing->calls.count < outgoing->asks_max);
}

static uint64_t message_bytes(const struct tr_outgoing_message *next) {
        return tr_call_bytes(next->message) + next->plain_bytes;
}

static void count_in(struct tr_outgoing *outgoing, const struct tr_outgoing_message *next) {
        outgoing->waiting_count++;
        outgoing->waiting_bytes += message_bytes(next);
        next->callee->waiting_count++;
        next->callee->waiting_bytes += message_bytes(next);
}

static void count_out(struct tr_outgoing *outgoing, const struct tr_outgoing_message *next) {
        outgoing->waiting_count--;
        outgoing->waiting_bytes -= message_bytes(next);
        next->callee->waiting_count--;
        next->callee->waiting_bytes -= message_bytes(next);
}

int tr_outgoing_queue(struct tr_outgoing *outgoing, struct tr_callee *callee, struct tr_message *message, uint32_t id,
                      struct tr_writer *plain) {
        struct tr_outgoing_message *next = malloc(sizeof(*next));
        if (!next)
                return tr_error_origin(-ENOMEM);
        *next = (struct tr_outgoing_message){ .message = tr_message_ref(message), .callee = callee, .id = id };
        if (plain->data)
                next->plain = tr_writer_steal(plain, &next->plain_bytes);
        tr_list_append(&outgoing->waiting, &next->link);
        count_in(outgoing, next);
        return 0;
}

bool tr_outgoing_next(struct tr_outgoing *outgoing, struct tr_outgoing_message *ret_next) {
        struct tr_outgoing_message *next = tr_list_first(&outgoing->waiting, struct tr_outgoing_message, link);
        if (!next)
                return false;
        tr_list_unlink(&next->link);
        count_out(outgoing, next);
        *ret_next = *next;
        free(next);
        return true;
}

struct tr_span tr_outgoing_args(const struct tr_outgoing_message *next) {
        if (next->plain)
                return (struct tr_span){ next->plain, next->plain_bytes };
        return (struct tr_span){ tr_message_args(next->message), next->message->args_bytes };
}

void tr_outgoing_let_go(struct tr_outgoing *outgoing, const struct tr_outgoing_message *next, bool went_out, struct tr_list *ret_done) {
        struct tr_message *message = next->message;
        free(next->plain);
        if (message->asker && went_out) {
                tr_calls_set_sent(&outgoing->calls, next->id);
                tr_message_unref(message); /* the call has another */
                return;
        }
        if (message->asker)
                tr_message_unref(tr_calls_take(&outgoing->calls, next->id));
        tr_list_append(ret_done, &message->link);
}

void tr_outgoing_take(struct tr_outgoing *outgoing, const struct tr_callee *callee, struct tr_list *ret_asks, struct tr_list *ret_waiting) {
        struct tr_outgoing_message *next;
        tr_list_for_each(next, &outgoing->waiting, link) {
                if (callee && next->callee != callee)
                        continue;
                tr_list_unlink(&next->link);
                count_out(outgoing, next);
                tr_list_append(ret_waiting, &next->link);
        }
        tr_calls_take_all(&outgoing->calls, callee, ret_asks);
}
