/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_LOST_H
#define TR_CORE_LOST_H

#include <stdbool.h>

struct tr_component;
struct tr_failure;
struct tr_replica;

/*
 * Names that are lost. A manifest may name an operation (`lost`) that is to be run, as a task, whenever a name is given up by a death.
 * So that the daemon's own death is one, too, the store knows which names are held, of components with such a manifest.
 *
 * The store hears of a name before it is held, and that it is given up before anybody else can have it: what is done late for one
 * holder never meets the next. No lock is held in any of these. Where there is no store, or no memory, that is logged.
 */

/* It is about to hold its name, or holds it, and the manifest has come to want to know. */
void tr_lost_note(struct tr_replica *replica);
/* The same of all that hold one: the manifest has changed. */
void tr_lost_note_all(struct tr_component *component);
/* It gives its name up in order. Idempotent; nothing where it has died. */
void tr_lost_give_up(struct tr_replica *replica);
/* The same, to a successor that may have the same name. */
void tr_lost_hand_over(struct tr_replica *replica, const struct tr_replica *successor);
/* It dies: where it held its name, that is lost. The failure is borrowed; NULL: it is gone. Idempotent; nothing where it has given up. */
void tr_lost_die(struct tr_replica *replica, const struct tr_failure *failure);
/* The component was declared, and nobody has joined it: the names that a daemon before this one left held are lost. */
void tr_lost_begin(struct tr_component *component);

#endif
