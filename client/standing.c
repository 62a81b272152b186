/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes on after its answer.
 *
 * An agreement is made when the request is sent, but counts only from its answer on: answers are read in the order in
 * which the daemon wrote them, so whatever came before the answer still belongs to the one that is replaced, and where
 * there is none it waits for the answer. Ending one is an agreement too, to have none; so it needs no pointer to another that may be gone when the answer comes.
 */
#include "client/standing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/request.h"

static void append(struct tr_standing_list *list, struct tr_standing *standing) {
        standing->prev = list->last;
        if (list->last)
                list->last->next = standing;
        else
                list->first = standing;
        list->last = standing;
}

static void take_out(struct tr_standing_list *list, struct tr_standing *standing) {
        if (standing->prev)
                standing->prev->next = standing->next;
        else
                list->first = standing->next;
        if (standing->next)
                standing->next->prev = standing->prev;
        else
                list->last = standing->prev;
        if (standing->pending)
                standing->pending->subject = NULL;
}

void tr_standing_free(struct tr_standing *standing) {
        tr_failure_clear(&standing->refusal);
        tr_incoming_deinit(&standing->held);
        free(standing);
}

static void drop(struct tr_standing_list *list, struct tr_standing *standing) {
        take_out(list, standing);
        tr_standing_free(standing);
}

static bool is_called(const struct tr_standing *standing, const char *name, size_t length) {
        return strlen(standing->name) == length && !memcmp(standing->name, name, length);
}

static struct tr_standing *find(const struct tr_standing_list *list, enum tr_standing_kind kind, const char *name,
                                size_t length) {
        struct tr_standing *standing = list->first;

        while (standing && !(standing->is_agreed && standing->kind == kind && is_called(standing, name, length)))
                standing = standing->next;
        return standing;
}

const struct tr_standing *tr_standing_find(const struct troupe *troupe, enum tr_standing_kind kind, const char *name,
                                           size_t length) {
        return find(&troupe->standing, kind, name, length);
}

struct tr_standing *tr_standing_find_coming(struct troupe *troupe, enum tr_standing_kind kind, const char *name,
                                            size_t length) {
        struct tr_standing *standing = troupe->standing.first;

        if (find(&troupe->standing, kind, name, length))
                return NULL;
        while (standing && !(standing->pending && !standing->is_end && standing->kind == kind && is_called(standing, name, length)))
                standing = standing->next;
        return standing;
}

const char *tr_standing_method(const struct tr_standing *standing) {
        static const char *const methods[] = {
                [TR_STANDING_HELLO] = "hello",
                [TR_STANDING_SUBSCRIPTION] = "subscribe",
                [TR_STANDING_LISTENER] = "listen",
                [TR_STANDING_SERVICE] = "serve",
        };

        return methods[standing->kind];
}

void tr_standing_bind(struct tr_standing *standing, struct troupe_pending *pending) {
        standing->pending = pending;
        pending->subject = standing;
}

/* The standing that a request was about, from which the request is gone now. */
static struct tr_standing *unbind(struct troupe_pending *pending) {
        struct tr_standing *standing = pending->subject;

        if (standing)
                standing->pending = NULL;
        return standing;
}

/* A connection has one handle at a time, and another one each time. */
static void agree(struct troupe *troupe, struct tr_standing *standing, const struct troupe_value *value) {
        standing->is_agreed = true;
        if (standing->kind == TR_STANDING_LISTENER && troupe_value_handle(value, troupe->handle))
                troupe->handle[0] = '\0';
}

static void on_answer(struct troupe *troupe, struct troupe_pending *pending, enum tr_outcome outcome,
                      const struct troupe_value *value) {
        struct tr_standing *standing = unbind(pending), *earlier;

        if (outcome != TR_OUTCOME_LOST) /* where it was refused, requests among that are still to be answered */
                tr_incoming_release(troupe, &standing->held);
        if (outcome == TR_OUTCOME_ANSWERED || (outcome == TR_OUTCOME_LOST && standing->is_end)) {
                earlier = find(&troupe->standing, standing->kind, standing->name, strlen(standing->name));
                if (earlier)
                        drop(&troupe->standing, earlier);
        }
        if (outcome == TR_OUTCOME_ANSWERED && !standing->is_end)
                agree(troupe, standing, value);
        else
                drop(&troupe->standing, standing);
}

int tr_standing_add(struct tr_request *request, const struct tr_standing *like, const char *name) {
        size_t params_bytes = request->out->len - request->params, name_bytes = strlen(name) + 1;
        struct tr_standing *standing;
        int r = tr_writer_error(request->out);

        if (r)
                return r;
        standing = malloc(sizeof(*standing) + name_bytes + params_bytes);
        if (!standing)
                return -ENOMEM;
        *standing = *like;
        memcpy(standing->name, name, name_bytes);
        standing->params = memcpy(standing->name + name_bytes, request->out->data + request->params, params_bytes);
        standing->params_bytes = params_bytes;
        standing->is_asked = true;
        append(&request->troupe->standing, standing);
        tr_standing_bind(standing, request->pending);
        request->pending->hook = on_answer;
        return 0;
}

void tr_standing_answered_again(struct troupe *troupe, struct troupe_pending *pending, enum tr_outcome outcome,
                                const struct troupe_value *value) {
        struct tr_standing *standing = unbind(pending);

        if (!standing || outcome == TR_OUTCOME_LOST)
                return;
        if (outcome == TR_OUTCOME_ANSWERED) {
                agree(troupe, standing, value);
                return;
        }
        standing->is_agreed = false;
        if (tr_failure_read(&standing->refusal, value->data, value->size))
                tr_failure_say(&standing->refusal, TR_CODE_NO_MEMORY, "there was no memory for the daemon's reason");
}

bool tr_standing_has_refused(const struct tr_standing_list *list) {
        const struct tr_standing *standing = list->first;

        while (standing && !standing->refusal.is_set)
                standing = standing->next;
        return standing;
}

struct tr_standing *tr_standing_take_refused(struct tr_standing_list *list) {
        struct tr_standing *standing = list->first;

        while (standing && !standing->refusal.is_set)
                standing = standing->next;
        if (standing)
                take_out(list, standing);
        return standing;
}

/* The requests are gone already. */
void tr_standing_deinit(struct tr_standing_list *list) {
        while (list->first) {
                list->first->pending = NULL;
                drop(list, list->first);
        }
}
