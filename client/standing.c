/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes on after its answer.
 *
 * An agreement is made when the request is sent, but counts only from its answer on: answers are read in the order in
 * which the daemon wrote them, so whatever came before the answer still belongs to the one that is replaced. Ending
 * one is an agreement too, to have none; so it needs no pointer to another that may be gone when the answer comes.
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

static void drop(struct tr_standing_list *list, struct tr_standing *standing) {
        if (standing->prev)
                standing->prev->next = standing->next;
        else
                list->first = standing->next;
        if (standing->next)
                standing->next->prev = standing->prev;
        else
                list->last = standing->prev;
        free(standing);
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

static void on_answer(struct troupe *troupe, struct troupe_pending *pending, enum tr_outcome outcome,
                      const struct troupe_value *value) {
        struct tr_standing *standing = pending->subject, *earlier;

        if (outcome == TR_OUTCOME_ANSWERED || (outcome == TR_OUTCOME_LOST && standing->is_end)) {
                earlier = find(&troupe->standing, standing->kind, standing->name, strlen(standing->name));
                if (earlier)
                        drop(&troupe->standing, earlier);
        }
        if (outcome == TR_OUTCOME_ANSWERED && !standing->is_end)
                standing->is_agreed = true;
        else
                drop(&troupe->standing, standing);
}

int tr_standing_add(struct tr_request *request, const struct tr_standing *like, const char *name) {
        struct tr_standing *standing;
        int r = tr_writer_error(request->out);

        if (r)
                return r;
        standing = malloc(sizeof(*standing) + strlen(name) + 1);
        if (!standing)
                return -ENOMEM;
        *standing = *like;
        strcpy(standing->name, name);
        append(&request->troupe->standing, standing);
        request->pending->subject = standing;
        request->pending->hook = on_answer;
        return 0;
}

void tr_standing_deinit(struct tr_standing_list *list) {
        while (list->first)
                drop(list, list->first);
}
