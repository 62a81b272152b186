/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifications and requests of the daemon.
 *
 * Nothing that was read is lost: where there is no memory for what a frame needs, it is left in the input, and whoever
 * reads says so and comes again. A callback borrows what it gets from the frame itself. Names in it become C strings
 * where they lie: a string's head is at least a byte, so moving the string over its head makes room for a NUL.
 *
 * What comes while a call waits is kept, in the order in which it came, together with others' answers. That is bounded:
 * a call that waits long on a connection that much comes through ends rather than fill the memory.
 */
#include "client/incoming.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/connection.h"
#include "client/dispatch.h"
#include "proto/value.h"

/* This much may be kept, or one frame. */
#define KEPT_MAX_BYTES (16u << 20)

struct tr_incoming {
        struct tr_incoming *next;
        uint64_t order;
        struct tr_frame frame; /* its spans point behind it */
        uint8_t bytes[];
};

/* A string that begins at *at and has a NUL behind it from then on; NULL where there is none, or one with a NUL in it.
 * Moves *at to what comes behind it. */
static const char *take_text(uint8_t *base, struct tr_reader *reader) {
        struct tr_token token;
        uint8_t *text;

        if (tr_read(reader, &token) || !tr_token_is_text(&token) || memchr(token.data, '\0', token.len))
                return NULL;
        text = base + (token.data - base) - 1;
        memmove(text, token.data, token.len);
        text[token.len] = '\0';
        return (const char *)text;
}

/* event [topic, value] */
static void run_event(struct troupe *troupe, uint8_t *params, size_t bytes) {
        struct tr_reader reader = tr_reader(params, bytes);
        const struct tr_standing *subscription;
        struct tr_token head;
        const char *topic;

        if (tr_read(&reader, &head) || head.type != TR_ARRAY || head.count != 2)
                return;
        topic = take_text(params, &reader);
        if (!topic)
                return;
        subscription = tr_standing_find(troupe, TR_STANDING_SUBSCRIPTION, topic);
        if (!subscription)
                return;
        tr_dispatch_enter(troupe);
        subscription->on_event(troupe, topic, &(struct troupe_value){ reader.at, reader.end - reader.at },
                               subscription->userdata);
        (void)tr_dispatch_leave(troupe);
}

static bool has_method(const struct tr_frame *frame, const char *name) {
        struct tr_reader reader = tr_reader(frame->method.data, frame->method.bytes);
        struct tr_token token;

        return !tr_read(&reader, &token) && tr_token_equals(&token, name);
}

/* Who asks what nobody answers here gets an answer all the same. */
static int refuse(struct troupe *troupe, const struct tr_frame *frame) {
        struct tr_writer *out = &troupe->output.bytes;
        size_t start = out->len;

        tr_write_array(out, 4);
        tr_write_int(out, TR_FRAME_RESPONSE);
        tr_write_int(out, frame->id);
        tr_write_text(out, tr_code_text(TR_CODE_UNKNOWN_METHOD));
        tr_write_nil(out);
        if (!tr_writer_error(out))
                return 0;
        out->len = start;
        out->error = 0;
        return -ENOMEM;
}

int tr_incoming_run(struct troupe *troupe, const struct tr_frame *frame, uint8_t *params) {
        if (frame->type == TR_FRAME_REQUEST)
                return refuse(troupe, frame);
        if (has_method(frame, "event"))
                run_event(troupe, params, frame->params.bytes);
        return 0;
}

bool tr_incoming_is_full(const struct tr_incoming_queue *queue) {
        return queue->bytes >= KEPT_MAX_BYTES;
}

int tr_incoming_keep(struct troupe *troupe, const struct tr_frame *frame) {
        struct tr_incoming_queue *queue = &troupe->kept;
        size_t bytes = frame->method.bytes + frame->params.bytes;
        struct tr_incoming *kept;

        if (tr_incoming_is_full(queue))
                return -EOVERFLOW;
        kept = malloc(sizeof(*kept) + bytes);
        if (!kept)
                return -ENOMEM;
        *kept = (struct tr_incoming){ .order = tr_connection_order(troupe), .frame = *frame };
        kept->frame.method.data = memcpy(kept->bytes, frame->method.data, frame->method.bytes);
        kept->frame.params.data =
                memcpy(kept->bytes + frame->method.bytes, frame->params.data, frame->params.bytes);
        if (queue->last)
                queue->last->next = kept;
        else
                queue->first = kept;
        queue->last = kept;
        queue->bytes += sizeof(*kept) + bytes;
        return 0;
}

uint64_t tr_incoming_order(const struct tr_incoming_queue *queue) {
        return queue->first ? queue->first->order : UINT64_MAX;
}

static struct tr_incoming *pop(struct tr_incoming_queue *queue) {
        struct tr_incoming *kept = queue->first;

        if (!kept)
                return NULL;
        queue->first = kept->next;
        if (!queue->first)
                queue->last = NULL;
        queue->bytes -= sizeof(*kept) + kept->frame.method.bytes + kept->frame.params.bytes;
        return kept;
}

static void put_back(struct tr_incoming_queue *queue, struct tr_incoming *kept) {
        kept->next = queue->first;
        queue->first = kept;
        if (!queue->last)
                queue->last = kept;
        queue->bytes += sizeof(*kept) + kept->frame.method.bytes + kept->frame.params.bytes;
}

int tr_incoming_run_kept(struct troupe *troupe) {
        struct tr_incoming *kept = pop(&troupe->kept);
        int r = tr_incoming_run(troupe, &kept->frame, kept->bytes + kept->frame.method.bytes);

        if (r)
                put_back(&troupe->kept, kept);
        else
                free(kept);
        return r;
}

void tr_incoming_deinit(struct tr_incoming_queue *queue) {
        for (struct tr_incoming *kept; (kept = pop(queue));)
                free(kept);
}
