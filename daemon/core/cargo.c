/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cargo, and its way back.
 *
 * A message that is refused, dropped or never looked at has no handler that could say so, and a `send` has nobody who is
 * told. So cargo itself knows who loaded it: whatever becomes of what it travels in, an owner that has no use for it
 * returns it, and freeing a message or an answer does so.
 */
#include "daemon/core/cargo.h"

#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "daemon/core/actor.h"

struct tr_cargo *tr_cargo_new(struct tr_actor *home, uint32_t count) {
        struct tr_cargo *cargo = calloc(1, sizeof(*cargo) + count * sizeof(cargo->blocks[0]));
        if (!cargo)
                return NULL;
        cargo->wrapping = tr_answer_new(TR_ANSWER_CARGO, NULL, 0);
        if (!cargo->wrapping) {
                free(cargo);
                return NULL;
        }
        tr_target_ref(&home->target);
        cargo->home = home;
        cargo->count = count;
        return cargo;
}

void tr_cargo_return(struct tr_cargo *take_cargo) {
        if (!take_cargo || !take_cargo->home) {
                tr_cargo_free(take_cargo);
                return;
        }
        struct tr_actor *home = tr_steal(take_cargo->home);
        struct tr_answer *answer = tr_steal(take_cargo->wrapping);
        answer->cargo = take_cargo;
        tr_mailbox_post_answer(&home->mailbox, answer);
        tr_target_unref(&home->target);
}

void tr_cargo_free(struct tr_cargo *take_cargo) {
        if (!take_cargo)
                return;
        for (uint32_t i = 0; i < take_cargo->count; i++)
                free(take_cargo->blocks[i].memory);
        if (take_cargo->home)
                tr_target_unref(&take_cargo->home->target);
        tr_answer_free(take_cargo->wrapping);
        free(take_cargo);
}
