/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_ENTITY_TURN_H
#define TR_CORE_ENTITY_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/list.h"

struct tr_invocation;
struct tr_message;

/*
 * Whose turn it is to change an entity. Transitions of one entity that run side by side would undo each other's work: all but the first
 * to be written are run again. So one has its turn, from when it is picked (or is the next to be) until what it has changed is on its way
 * to the store, and the others are put aside from where they wait, in the order in which they came.
 *
 * This is about work that is saved, not about what is right, which the versions see to. So two may pass: one of the same trace that
 * is deeper in its chain of calls than the one whose turn it is, which may be waiting for it; and, where a turn has lasted for a
 * second, the first of those that wait, since two may be waiting for each other.
 *
 * It knows no lock and no clock: who owns the turns has those (core/component.h: both are the component's).
 */
#define TR_ENTITY_TURN_NS UINT64_C(1000000000)
#define TR_ENTITY_TURN_BUCKETS 64

/* Of one call. */
struct tr_entity_turn {
        bool contends; /* it is a transition of an entity that others may know. Immutable */
        bool is_mine;
        bool passes;        /* it does not wait for whose turn it is */
        uint64_t since_ns;  /* is_mine: since when; or when another last passed */
        struct tr_entity_turn *next; /* is_mine: in its bucket */
        struct tr_list waiting;      /* is_mine: messages of those that are put aside, the oldest first, each a reference */
        struct tr_list *home; /* the queue that it was put aside from, and goes back to; NULL: it is not put aside */
};

struct tr_entity_turns {
        struct tr_entity_turn *buckets[TR_ENTITY_TURN_BUCKETS];
        uint64_t wake_ns; /* tr_entity_turns_pass() has to be called then; 0: nobody waits */
};

/* The first in a queue of calls that need not wait, borrowed; NULL: there is none. Those before it are put aside. */
struct tr_message *tr_entity_turns_first(struct tr_entity_turns *turns, struct tr_list *calls);
/* It was picked. Of a call that has to do with entities; nothing where it does not contend. */
void tr_entity_turns_take(struct tr_entity_turns *turns, struct tr_invocation *invocation, uint64_t now_ns);
/* It is over, with its turn: the next one's begins, who goes back to its queue. One that was put aside is not any more: the caller has
 * unlinked it. Of such a call too; idempotent. */
void tr_entity_turns_leave(struct tr_entity_turns *turns, struct tr_invocation *invocation, uint64_t now_ns);
/* All that are put aside go back to their queues. */
void tr_entity_turns_restore(struct tr_entity_turns *turns);
/* Has those pass for whom a turn has lasted too long. Answers whether any does; wake_ns is when it is to be called again. */
bool tr_entity_turns_pass(struct tr_entity_turns *turns, uint64_t now_ns);

#endif
