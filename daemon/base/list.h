/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_BASE_LIST_H
#define TR_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Intrusive doubly linked lists. A list is a ring through a head of the same
 * type; an entry that is in no list points at itself, so that unlinking is
 * always allowed. Nothing is allocated; whoever owns the list guards it.
 */
struct tr_list {
        struct tr_list *prev;
        struct tr_list *next;
};

#define TR_LIST_INIT(name) ((struct tr_list){ &(name), &(name) })

/* Through void: what the member is part of is aligned as its type wants it, which the compiler cannot see. */
#define tr_container_of(pointer, type, member) ((type *)(void *)((char *)(pointer) - offsetof(type, member)))

/* The entries of a list as the type they are part of; the body may unlink the present one. */
#define tr_list_for_each(entry, list, member)                                                                    \
        for (struct tr_list *at_##entry = (list)->next, *next_##entry = at_##entry->next;                        \
             at_##entry != (list) && ((entry) = tr_container_of(at_##entry, __typeof__(*(entry)), member), true); \
             at_##entry = next_##entry, next_##entry = at_##entry->next)

#define tr_list_first(list, type, member) \
        (tr_list_is_empty(list) ? NULL : tr_container_of((list)->next, type, member))
#define tr_list_last(list, type, member) \
        (tr_list_is_empty(list) ? NULL : tr_container_of((list)->prev, type, member))

static inline void tr_list_init(struct tr_list *list) {
        list->prev = list->next = list;
}

static inline bool tr_list_is_empty(const struct tr_list *list) {
        return list->next == list;
}

static inline void tr_list_append(struct tr_list *list, struct tr_list *entry) {
        entry->prev = list->prev;
        entry->next = list;
        list->prev->next = entry;
        list->prev = entry;
}

static inline void tr_list_prepend(struct tr_list *list, struct tr_list *entry) {
        tr_list_append(list->next, entry);
}

static inline void tr_list_unlink(struct tr_list *entry) {
        entry->prev->next = entry->next;
        entry->next->prev = entry->prev;
        tr_list_init(entry);
}

/* Moves everything in `from` behind what is in `list`; `from` is empty after. */
static inline void tr_list_splice(struct tr_list *list, struct tr_list *from) {
        if (tr_list_is_empty(from))
                return;
        from->next->prev = list->prev;
        from->prev->next = list;
        list->prev->next = from->next;
        list->prev = from->prev;
        tr_list_init(from);
}

/* Moves the front of `from`, `last` included, behind what is in `list`. */
static inline void tr_list_splice_front(struct tr_list *list, struct tr_list *from, struct tr_list *last) {
        struct tr_list *first = from->next;
        from->next = last->next;
        last->next->prev = from;
        first->prev = list->prev;
        list->prev->next = first;
        last->next = list;
        list->prev = last;
}

#endif
