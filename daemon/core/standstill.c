/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orderly stops that wait for nothing that can come any more.
 *
 * A handler of an actor that stops may wait for the actor's own end; or for the end of another one that stops too, whose handler waits
 * for this one. Each would wait for ever, so one ends early, and what the others waited for comes.
 *
 * Who stops, is in no turn, and waits for others only is listed with whom it waits for. Whoever joins the list follows that from one
 * to the next. Where all whom he reaches are listed, and nothing has come for any of them meanwhile, none of them will ever move: a
 * mailbox that is closed has no other senders than those whom its owner has asked. The search ends at the first who is not listed,
 * which is nearly always the first one.
 *
 * Who is waited for is only compared, since a target may go at any time. One that has gone and whose memory is another's by now has
 * answered before, and that answer is seen.
 */
#include "daemon/core/standstill.h"

#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "daemon/core/actor.h"

void tr_awaited_add(struct tr_awaited *awaited, const struct tr_target *target) {
        for (uint32_t i = awaited->count; i-- > 0;)
                if (awaited->targets[i] == target)
                        return;
        if (awaited->count == awaited->room) {
                uint32_t room = awaited->room ? 2 * awaited->room : 4;
                const struct tr_target **targets =
                        reallocarray(awaited->targets, room, sizeof(const struct tr_target *));
                if (!targets) {
                        awaited->no_memory = true;
                        return;
                }
                awaited->targets = targets;
                awaited->room = room;
        }
        awaited->targets[awaited->count++] = target;
}

static void awaited_clear(struct tr_awaited *awaited) {
        free(awaited->targets);
        *awaited = (struct tr_awaited){ 0 };
}

void tr_standstill_init(struct tr_standstill *standstill) {
        *standstill = (struct tr_standstill){ 0 };
        tr_lock_init(&standstill->lock);
        tr_list_init(&standstill->standing);
}

void tr_standstill_deinit(struct tr_standstill *standstill) {
        tr_lock_deinit(&standstill->lock);
}

static struct tr_actor *find_locked(struct tr_standstill *standstill, const struct tr_target *target)
        TR_REQUIRES(standstill->lock) {
        struct tr_actor *actor;
        tr_list_for_each(actor, &standstill->standing, standing.link)
                if (&actor->target == target)
                        return actor;
        return NULL;
}

/* Reaches all whom one waits for. False where one of them may still move. */
static bool follow_locked(struct tr_standstill *standstill, struct tr_actor *from) TR_REQUIRES(standstill->lock) {
        const struct tr_awaited *awaited = &from->standing.awaited;
        for (uint32_t i = 0; i < awaited->count; i++) {
                struct tr_actor *actor = find_locked(standstill, awaited->targets[i]);
                if (!actor || tr_mailbox_has_come(&actor->mailbox))
                        return false;
                if (actor->standing.reached)
                        continue;
                /* behind all that were reached: the walk comes by */
                actor->standing.reached = true;
                tr_list_unlink(&actor->standing.link);
                tr_list_append(&standstill->standing, &actor->standing.link);
        }
        return true;
}

/* Whether none of those who are waited for, first of all by `first`, will ever move. They are marked as reached then. */
static bool search_locked(struct tr_standstill *standstill, struct tr_actor *first) TR_REQUIRES(standstill->lock) {
        struct tr_actor *actor;
        tr_list_for_each(actor, &standstill->standing, standing.link)
                actor->standing.reached = false;
        first->standing.reached = true;
        tr_list_unlink(&first->standing.link);
        tr_list_append(&standstill->standing, &first->standing.link);
        for (struct tr_list *at = &first->standing.link; at != &standstill->standing; at = at->next)
                if (!follow_locked(standstill, tr_container_of(at, struct tr_actor, standing.link)))
                        return false;
        return true;
}

/* Who of them ends: one that a handler keeps, since a close handler has an order to hold to; or else `last`. */
static struct tr_actor *choose_locked(struct tr_standstill *standstill, struct tr_actor *last)
        TR_REQUIRES(standstill->lock) {
        struct tr_actor *actor;
        if (!last->standing.closing)
                return last;
        tr_list_for_each(actor, &standstill->standing, standing.link)
                if (actor->standing.reached && !actor->standing.closing)
                        return actor;
        return last;
}

static void remove_locked(struct tr_standstill *standstill, struct tr_actor *actor) TR_REQUIRES(standstill->lock) {
        tr_list_unlink(&actor->standing.link);
        awaited_clear(&actor->standing.awaited);
}

bool tr_standstill_reached(struct tr_actor *actor) {
        struct tr_standstill *standstill = &actor->target.system->standstill;
        struct tr_standing *standing = &actor->standing;
        struct tr_awaited awaited = { 0 };
        struct tr_actor *chosen = NULL;

        if (standing->given_up) {
                standing->given_up = false;
                return true;
        }
        bool comes = actor->target.system->behaviour->awaits(actor->self, &awaited);
        if (awaited.no_memory)
                tr_actor_fault(actor, NULL,
                               tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for what a stop waits for"));
        if (comes || awaited.no_memory || awaited.count == 0) {
                free(awaited.targets);
                return !comes && !awaited.no_memory;
        }
        tr_lock_acquire(&standstill->lock);
        standing->awaited = awaited;
        standing->closing = actor->closing;
        standing->listed = true;
        tr_list_append(&standstill->standing, &standing->link);
        if (search_locked(standstill, actor)) {
                chosen = choose_locked(standstill, actor);
                remove_locked(standstill, chosen);
                if (chosen != actor) {
                        chosen->standing.given_up = true;
                        tr_mailbox_call_attention(&chosen->mailbox);
                }
        }
        tr_lock_release(&standstill->lock);
        return chosen == actor;
}

void tr_standstill_leave(struct tr_actor *actor) {
        struct tr_standstill *standstill = &actor->target.system->standstill;
        if (!actor->standing.listed)
                return;
        actor->standing.listed = false;
        tr_lock_acquire(&standstill->lock);
        remove_locked(standstill, actor);
        tr_lock_release(&standstill->lock);
}
