/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns: those whose turn it is are in a table, by the ids of their entities; behind each stand those that wait for it.
 *
 * A call is put aside when it would be picked, not when it comes: what nobody could take anyhow is left in order. Each is put aside
 * once for each turn of its own, however many wait for the same entity.
 */
#include "daemon/core/entity_turn.h"

#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/entity_use.h"
#include "daemon/core/invocation.h"

/* Of a call that has one. */
static struct tr_entity_turn *turn_of(const struct tr_invocation *invocation) {
        return &invocation->entity->turn;
}

static struct tr_invocation *invocation_of(struct tr_entity_turn *turn) {
        return tr_container_of(turn, struct tr_entity_use, turn)->invocation;
}

/* FNV-1a (Fowler, Noll, Vo). */
static struct tr_entity_turn **bucket_of(struct tr_entity_turns *turns, const char *id) {
        uint32_t hash = UINT32_C(2166136261);
        for (; *id; id++)
                hash = (hash ^ (uint8_t)*id) * UINT32_C(16777619);
        return &turns->buckets[hash % TR_ENTITY_TURN_BUCKETS];
}

/* Whose turn it is to change an entity; NULL: nobody's. */
static struct tr_entity_turn *find(struct tr_entity_turns *turns, const char *id) {
        struct tr_entity_turn *turn = *bucket_of(turns, id);
        while (turn && strcmp(invocation_of(turn)->id, id) != 0)
                turn = turn->next;
        return turn;
}

static void begin(struct tr_entity_turns *turns, struct tr_entity_turn *turn, uint64_t now_ns) {
        struct tr_entity_turn **bucket = bucket_of(turns, invocation_of(turn)->id);
        turn->is_mine = true;
        turn->since_ns = now_ns;
        turn->next = *bucket;
        *bucket = turn;
}

/* Whether one may be called by what the other does: it is deeper in the same chain. */
static bool is_within(const struct tr_span_id *span, const struct tr_span_id *outer) {
        return span->depth > outer->depth && memcmp(span->trace, outer->trace, sizeof(span->trace)) == 0;
}

/* The turn that a call has to wait for; NULL: none. */
static struct tr_entity_turn *obstacle(struct tr_entity_turns *turns, const struct tr_invocation *invocation) {
        if (!invocation->entity)
                return NULL;
        const struct tr_entity_turn *own = turn_of(invocation);
        if (!own->contends || own->is_mine || own->passes)
                return NULL;
        struct tr_entity_turn *turn = find(turns, invocation->id);
        return turn && !is_within(&invocation->span, &invocation_of(turn)->span) ? turn : NULL;
}

static void put_aside(struct tr_entity_turns *turns, struct tr_invocation *invocation, struct tr_list *calls,
                      struct tr_entity_turn *behind) {
        uint64_t wake_ns = behind->since_ns + TR_ENTITY_TURN_NS;
        tr_list_unlink(&invocation->message->link);
        tr_invocation_put(&behind->waiting, invocation);
        turn_of(invocation)->home = calls;
        if (turns->wake_ns == 0 || wake_ns < turns->wake_ns)
                turns->wake_ns = wake_ns;
}

static void put_back(struct tr_message *message) {
        struct tr_entity_turn *turn = turn_of(message->invocation);
        struct tr_list *home = turn->home;
        turn->home = NULL;
        tr_list_unlink(&message->link);
        tr_invocation_put(home, message->invocation);
}

struct tr_message *tr_entity_turns_first(struct tr_entity_turns *turns, struct tr_list *calls) {
        struct tr_entity_turn *behind;
        struct tr_message *message;
        while ((message = tr_list_first(calls, struct tr_message, link)) && (behind = obstacle(turns, message->invocation)))
                put_aside(turns, message->invocation, calls, behind);
        return message;
}

void tr_entity_turns_take(struct tr_entity_turns *turns, struct tr_invocation *invocation, uint64_t now_ns) {
        struct tr_entity_turn *turn = turn_of(invocation);
        if (!turn->contends)
                return;
        turn->passes = false;
        if (turn->is_mine)
                turn->since_ns = now_ns;
        else if (!find(turns, invocation->id))
                begin(turns, turn, now_ns);
}

void tr_entity_turns_leave(struct tr_entity_turns *turns, struct tr_invocation *invocation, uint64_t now_ns) {
        struct tr_entity_turn *turn = turn_of(invocation);
        turn->home = NULL;
        if (!turn->is_mine)
                return;
        struct tr_entity_turn **at = bucket_of(turns, invocation->id);
        while (*at != turn)
                at = &(*at)->next;
        *at = turn->next;
        turn->is_mine = false;
        struct tr_message *message = tr_list_first(&turn->waiting, struct tr_message, link);
        if (!message)
                return;
        struct tr_entity_turn *next = turn_of(message->invocation);
        put_back(message);
        begin(turns, next, now_ns);
        tr_list_splice(&next->waiting, &turn->waiting);
}

void tr_entity_turns_restore(struct tr_entity_turns *turns) {
        struct tr_message *message;
        for (size_t i = 0; i < TR_ENTITY_TURN_BUCKETS; i++)
                for (struct tr_entity_turn *turn = turns->buckets[i]; turn; turn = turn->next)
                        /* the youngest first: the place of each is at the front then, and is found at once */
                        while ((message = tr_list_last(&turn->waiting, struct tr_message, link)))
                                put_back(message);
        turns->wake_ns = 0;
}

bool tr_entity_turns_pass(struct tr_entity_turns *turns, uint64_t now_ns) {
        bool any = false;
        turns->wake_ns = 0;
        for (size_t i = 0; i < TR_ENTITY_TURN_BUCKETS; i++)
                for (struct tr_entity_turn *turn = turns->buckets[i]; turn; turn = turn->next) {
                        struct tr_message *message = tr_list_first(&turn->waiting, struct tr_message, link);
                        if (message && now_ns >= turn->since_ns + TR_ENTITY_TURN_NS) {
                                turn_of(message->invocation)->passes = true;
                                put_back(message);
                                turn->since_ns = now_ns;
                                any = true;
                        }
                        uint64_t wake_ns = turn->since_ns + TR_ENTITY_TURN_NS;
                        if (!tr_list_is_empty(&turn->waiting) && (turns->wake_ns == 0 || wake_ns < turns->wake_ns))
                                turns->wake_ns = wake_ns;
                }
        return any;
}
