/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const tr_tally_states[TR_TALLY_STATES] = { "waiting", "running", "parked" };

enum tr_tally_state tr_tally_state_of(const char *name, size_t len) {
        for (int state = 0; state < TR_TALLY_STATES; state++)
                if (strlen(tr_tally_states[state]) == len && memcmp(tr_tally_states[state], name, len) == 0)
                        return (enum tr_tally_state)state;
        return TR_TALLY_STATES;
}

void tr_tally_init(struct tr_tally *tally) {
        *tally = (struct tr_tally){ 0 };
        tr_lock_init(&tally->lock);
}

void tr_tally_deinit(struct tr_tally *tally) {
        for (size_t i = 0; i < tally->count; i++)
                free(tally->entries[i].component);
        free(tally->entries);
        tr_lock_deinit(&tally->lock);
}

static struct tr_tally_entry *find(struct tr_tally *tally, const char *component, size_t len) {
        for (size_t i = 0; i < tally->count; i++)
                if (strlen(tally->entries[i].component) == len && memcmp(tally->entries[i].component, component, len) == 0)
                        return &tally->entries[i];
        return NULL;
}

static struct tr_tally_entry *add(struct tr_tally *tally, const char *component, size_t len) {
        char *name = strndup(component, len);
        if (!name)
                return NULL;
        tr_lock_acquire(&tally->lock);
        struct tr_tally_entry *entries = reallocarray(tally->entries, tally->count + 1, sizeof(*entries));
        if (entries) {
                tally->entries = entries;
                entries[tally->count++] = (struct tr_tally_entry){ .component = name };
        }
        tr_lock_release(&tally->lock);
        if (!entries)
                free(name);
        return entries ? &entries[tally->count - 1] : NULL;
}

int tr_tally_note(struct tr_tally *tally, const char *component, size_t len, enum tr_tally_state state, int64_t change) {
        struct tr_tally_entry *entry = find(tally, component, len);
        if (!entry)
                entry = add(tally, component, len);
        if (!entry)
                return tr_error_origin(-ENOMEM);
        entry->noted[state] += change;
        return 0;
}

void tr_tally_commit(struct tr_tally *tally) {
        tr_lock_acquire(&tally->lock);
        for (size_t i = 0; i < tally->count; i++)
                for (int state = 0; state < TR_TALLY_STATES; state++)
                        tally->entries[i].counts[state] += (uint64_t)tally->entries[i].noted[state];
        tr_lock_release(&tally->lock);
        tr_tally_forget(tally);
}

void tr_tally_forget(struct tr_tally *tally) {
        for (size_t i = 0; i < tally->count; i++)
                memset(tally->entries[i].noted, 0, sizeof(tally->entries[i].noted));
}

void tr_tally_visit(struct tr_tally *tally, void (*visit)(void *userdata, const struct tr_store_counts *counts), void *userdata) {
        tr_lock_acquire(&tally->lock);
        for (size_t i = 0; i < tally->count; i++) {
                const struct tr_tally_entry *entry = &tally->entries[i];
                const struct tr_store_counts counts = { entry->component, entry->counts[TR_TALLY_WAITING], entry->counts[TR_TALLY_RUNNING],
                                                        entry->counts[TR_TALLY_PARKED] };
                visit(userdata, &counts);
        }
        tr_lock_release(&tally->lock);
}
