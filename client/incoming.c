/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifications and requests of the daemon.
 *
 * Nothing that was read is lost: where there is no memory for what a frame needs, it is left in the input, and whoever
 * reads says so and comes again. A callback borrows what it gets from the frame itself: the name that each begins with
 * is made a C string where it lies, and what is behind it an array, over the heads that the two had.
 *
 * What comes while a call waits is kept, in the order in which it came, together with others' answers. That is bounded:
 * a call that waits long on a connection that much comes through ends rather than fill the memory.
 *
 * What comes for a subscription before its own answer does (a daemon may begin that early) is held back with it, and comes
 * after the answer; the same goes for listening and serving.
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

/* The params of a frame, an array, as they are taken apart. */
struct parts {
        uint8_t *params;
        struct tr_reader reader; /* stands before what is left */
        uint32_t left;
};

/* False where the params are no array of `least` values or more. */
static bool take_apart(struct parts *ret_parts, uint8_t *params, size_t bytes, uint32_t least) {
        struct tr_token head;

        ret_parts->params = params;
        ret_parts->reader = tr_reader(params, bytes);
        if (tr_read(&ret_parts->reader, &head) || head.type != TR_ARRAY || head.count < least)
                return false;
        ret_parts->left = head.count;
        return true;
}

/* Whether what comes first is a string that can be a C string. */
static bool has_name(const struct parts *parts) {
        struct tr_reader reader = parts->reader;
        struct tr_token token;

        return !tr_read(&reader, &token) && tr_token_is_text(&token) && !memchr(token.data, '\0', token.len);
}

/* Takes the string that has_name() has found, and makes a C string of it at the beginning of the params: their head and
 * its own are two bytes at least. */
static const char *take_name(struct parts *parts) {
        struct tr_token token;

        if (tr_read(&parts->reader, &token))
                return NULL;
        parts->left--;
        memmove(parts->params, token.data, token.len);
        parts->params[token.len] = '\0';
        return (const char *)parts->params;
}

/* What is left, as one array. Its head fits between the name that was taken and the first value: it is no longer than
 * the head of the params was, which counted one value more. */
static struct troupe_value rest(const struct parts *parts) {
        uint8_t *head = parts->params + (parts->reader.at - parts->params);

        if (parts->left < 16) {
                *--head = 0x90 | parts->left;
        } else {
                int width = parts->left <= UINT16_MAX ? 2 : 4;

                for (int i = 0; i < width; i++)
                        *--head = parts->left >> (8 * i);
                *--head = width == 2 ? 0xdc : 0xdd;
        }
        return (struct troupe_value){ head, parts->reader.end - head };
}

/* The next value; size 0 where there is none. */
static struct troupe_value take_value(struct parts *parts) {
        const uint8_t *at = parts->reader.at;

        if (!parts->left || tr_read_skip(&parts->reader))
                return (struct troupe_value){ NULL, 0 };
        parts->left--;
        return (struct troupe_value){ at, parts->reader.at - at };
}

/* event [topic, value] */
static void run_event(struct troupe *troupe, uint8_t *params, size_t bytes) {
        const struct tr_standing *subscription;
        struct troupe_value event;
        struct parts parts;
        const char *topic;

        if (!take_apart(&parts, params, bytes, 2) || !has_name(&parts))
                return;
        topic = take_name(&parts);
        event = take_value(&parts);
        subscription = tr_standing_find(troupe, TR_STANDING_SUBSCRIPTION, topic, strlen(topic));
        if (!subscription)
                return;
        tr_dispatch_enter(troupe);
        subscription->on_event(troupe, topic, &event, subscription->userdata);
        (void)tr_dispatch_leave(troupe);
}

static int refuse(struct troupe *troupe, const struct tr_frame *frame, enum tr_code code) {
        return frame->type == TR_FRAME_REQUEST ? tr_asked_refuse(troupe, frame->id, tr_code_text(code)) : 0;
}

/* message [handler, args...] */
static int run_message(struct troupe *troupe, const struct tr_frame *frame, uint8_t *params) {
        const struct tr_standing *listener = tr_standing_find(troupe, TR_STANDING_LISTENER, "", 0);
        struct troupe_asked *asked = NULL;
        struct troupe_value args;
        struct parts parts;
        const char *handler;

        if (!listener)
                return refuse(troupe, frame, TR_CODE_UNKNOWN_METHOD);
        if (!take_apart(&parts, params, frame->params.bytes, 1) || !has_name(&parts))
                return refuse(troupe, frame, TR_CODE_BAD_REQUEST);
        if (frame->type == TR_FRAME_REQUEST) {
                asked = tr_asked_new(troupe, frame->id);
                if (!asked)
                        return -ENOMEM;
        }
        handler = take_name(&parts);
        args = rest(&parts);
        tr_dispatch_enter(troupe);
        listener->on_message(troupe, handler, &args, asked, listener->userdata);
        (void)tr_dispatch_leave(troupe);
        return 0;
}

/* Whom a call is for, by what its context says. */
static bool get_component(const struct troupe_value *context, const char **ret_name, size_t *ret_length) {
        struct troupe_value component;

        return context->size && !troupe_value_get(context, "component", &component) &&
               !troupe_value_string(&component, ret_name, ret_length);
}

static const struct tr_standing *find_service(const struct troupe *troupe, const struct troupe_value *context) {
        const char *name;
        size_t length;

        return get_component(context, &name, &length) ? tr_standing_find(troupe, TR_STANDING_SERVICE, name, length)
                                                      : NULL;
}

/* call [operation, input, context] */
static int run_call(struct troupe *troupe, const struct tr_frame *frame, uint8_t *params) {
        const struct tr_standing *service;
        struct troupe_value input, context;
        struct parts parts, ahead;
        struct troupe_asked *asked;
        const char *operation;

        if (!take_apart(&parts, params, frame->params.bytes, 3))
                return refuse(troupe, frame, TR_CODE_UNKNOWN_METHOD);
        ahead = parts;
        (void)take_value(&ahead);
        input = take_value(&ahead);
        context = take_value(&ahead);
        service = find_service(troupe, &context);
        if (!service)
                return refuse(troupe, frame, TR_CODE_UNKNOWN_METHOD);
        if (!has_name(&parts))
                return refuse(troupe, frame, TR_CODE_BAD_REQUEST);
        asked = tr_asked_new(troupe, frame->id);
        if (!asked)
                return -ENOMEM;
        asked->on_cancelled = service->on_cancelled;
        asked->userdata = service->userdata;
        operation = take_name(&parts);
        tr_dispatch_enter(troupe);
        service->on_operation(troupe, operation, &input, &context, asked, service->userdata);
        (void)tr_dispatch_leave(troupe);
        return 0;
}

/* cancel [msgid]: nobody waits for it any more. */
static void run_cancel(struct troupe *troupe, uint8_t *params, size_t bytes) {
        struct troupe_asked *asked;
        struct troupe_value value;
        struct parts parts;
        int64_t id;

        if (!take_apart(&parts, params, bytes, 1))
                return;
        value = take_value(&parts);
        if (troupe_value_int(&value, &id) || id < 0 || id > UINT32_MAX)
                return;
        asked = tr_asked_find(troupe, id);
        if (!asked || !asked->on_cancelled)
                return;
        tr_dispatch_enter(troupe);
        asked->on_cancelled(troupe, asked, asked->userdata);
        (void)tr_dispatch_leave(troupe);
}

static bool has_method(const struct tr_frame *frame, const char *name) {
        struct tr_reader reader = tr_reader(frame->method.data, frame->method.bytes);
        struct tr_token token;

        return !tr_read(&reader, &token) && tr_token_equals(&token, name);
}

/* Who asks what nobody answers here gets an answer all the same; what nobody wants to be told is passed over. */
int tr_incoming_run(struct troupe *troupe, const struct tr_frame *frame, uint8_t *params) {
        bool is_request = frame->type == TR_FRAME_REQUEST;

        if (has_method(frame, "message"))
                return run_message(troupe, frame, params);
        if (is_request && has_method(frame, "call"))
                return run_call(troupe, frame, params);
        if (!is_request && has_method(frame, "event"))
                run_event(troupe, params, frame->params.bytes);
        else if (!is_request && has_method(frame, "cancel"))
                run_cancel(troupe, params, frame->params.bytes);
        return refuse(troupe, frame, TR_CODE_UNKNOWN_METHOD);
}

/* What a call's params are said to be for, with nothing written to them. */
static bool peek_component(struct parts *parts, const char **ret_name, size_t *ret_length) {
        struct troupe_value context;

        (void)take_value(parts);
        (void)take_value(parts);
        context = take_value(parts);
        return get_component(&context, ret_name, ret_length);
}

/* What is being agreed on, and would take the frame if it were; NULL where there is no such thing. */
static struct tr_standing *find_coming(struct troupe *troupe, const struct tr_frame *frame) {
        uint8_t *params = troupe->input.data + (frame->params.data - troupe->input.data);
        struct parts parts;
        struct tr_token topic;
        const char *component;
        size_t length;

        if (has_method(frame, "message"))
                return tr_standing_find_coming(troupe, TR_STANDING_LISTENER, "", 0);
        if (!take_apart(&parts, params, frame->params.bytes, 2))
                return NULL;
        if (frame->type == TR_FRAME_REQUEST)
                return has_method(frame, "call") && peek_component(&parts, &component, &length) ?
                               tr_standing_find_coming(troupe, TR_STANDING_SERVICE, component, length) :
                               NULL;
        if (!has_method(frame, "event") || !has_name(&parts) || tr_read(&parts.reader, &topic))
                return NULL;
        return tr_standing_find_coming(troupe, TR_STANDING_SUBSCRIPTION, (const char *)topic.data, topic.len);
}

bool tr_incoming_is_full(const struct tr_incoming_queue *queue) {
        return queue->bytes >= KEPT_MAX_BYTES;
}

static size_t size_of(const struct tr_incoming *kept) {
        return sizeof(*kept) + kept->frame.method.bytes + kept->frame.params.bytes;
}

static void push(struct tr_incoming_queue *queue, struct tr_incoming *kept) {
        kept->next = NULL;
        if (queue->last)
                queue->last->next = kept;
        else
                queue->first = kept;
        queue->last = kept;
        queue->bytes += size_of(kept);
}

static int push_copy(struct troupe *troupe, struct tr_incoming_queue *queue, const struct tr_frame *frame) {
        struct tr_incoming *kept = malloc(sizeof(*kept) + frame->method.bytes + frame->params.bytes);

        if (!kept)
                return -ENOMEM;
        *kept = (struct tr_incoming){ .order = tr_connection_order(troupe), .frame = *frame };
        kept->frame.method.data = memcpy(kept->bytes, frame->method.data, frame->method.bytes);
        kept->frame.params.data = memcpy(kept->bytes + frame->method.bytes, frame->params.data, frame->params.bytes);
        push(queue, kept);
        return 0;
}

int tr_incoming_keep(struct troupe *troupe, const struct tr_frame *frame) {
        return tr_incoming_is_full(&troupe->kept) ? -EOVERFLOW : push_copy(troupe, &troupe->kept, frame);
}

int tr_incoming_hold(struct troupe *troupe, const struct tr_frame *frame) {
        struct tr_standing *standing = find_coming(troupe, frame);
        int r;

        if (!standing || tr_incoming_is_full(&standing->held))
                return 0;
        r = push_copy(troupe, &standing->held, frame);
        return r ? r : 1;
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
        queue->bytes -= size_of(kept);
        return kept;
}

static void put_back(struct tr_incoming_queue *queue, struct tr_incoming *kept) {
        kept->next = queue->first;
        queue->first = kept;
        if (!queue->last)
                queue->last = kept;
        queue->bytes += size_of(kept);
}

int tr_incoming_run_kept(struct troupe *troupe) {
        struct tr_incoming *kept = pop(&troupe->kept);
        int r;

        if (!kept)
                return 0;
        r = tr_incoming_run(troupe, &kept->frame, kept->bytes + kept->frame.method.bytes);
        if (r)
                put_back(&troupe->kept, kept);
        else
                free(kept);
        return r;
}

void tr_incoming_release(struct troupe *troupe, struct tr_incoming_queue *held) {
        for (struct tr_incoming *kept; (kept = pop(held));) {
                kept->order = tr_connection_order(troupe);
                push(&troupe->kept, kept);
        }
}

void tr_incoming_lose_requests(struct tr_incoming_queue *queue) {
        struct tr_incoming_queue all = *queue;

        *queue = (struct tr_incoming_queue){ 0 };
        for (struct tr_incoming *kept; (kept = pop(&all));)
                if (kept->frame.type == TR_FRAME_REQUEST)
                        free(kept);
                else
                        push(queue, kept);
}

void tr_incoming_deinit(struct tr_incoming_queue *queue) {
        for (struct tr_incoming *kept; (kept = pop(queue));)
                free(kept);
}
