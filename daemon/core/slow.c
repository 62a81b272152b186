/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watch for slow handlers: one that runs longer than limits.slow is
 * reported, with where it is, and again at doubling times.
 *
 * Nothing is paid for it on the way of a message: actors count their turns and
 * messages anyway, and one that shows the same count at two looks, in a turn
 * both times, has been in the same handler in between. So a report comes up to
 * one interval late. The looks end with one that finds no actor in a turn: an
 * idle daemon has none, and the next turn of any actor starts them.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/core/actor.h"

/* Looks within the time that counts as slow. */
#define LOOKS 8

static void slow_report(struct tr_actor *actor, uint64_t elapsed_ns) {
        struct tr_system *system = actor->target.system;
        char handle[TR_HANDLE_SHORT + 1], handler[TR_HANDLER_SHOWN_MAX + 1];
        tr_handle_format_short(&actor->target.handle, handle);
        struct tr_log_context context = { .actor = actor->target.label, .handle = handle };
        bool known = tr_mailbox_current_handler(&actor->mailbox, handler, sizeof(handler));
        tr_log_with(TR_LOG_WARNING, &context, "%s has been running for %llu s", known ? handler : "its code",
                    (unsigned long long)(elapsed_ns / TR_NS_PER_S));
        if (system->hooks.event)
                system->hooks.event(system->hooks.userdata, TR_EVENT_SLOW, &actor->target, NULL);
        tr_actor_ask_report(actor);
}

/* Answers whether the actor is in a turn. */
static bool slow_look(struct tr_actor *actor, uint64_t now_ns) {
        uint64_t slow_ns = actor->target.system->limits.slow_ns;
        /* relaxed: compared with an earlier look only */
        uint64_t begun = atomic_load_explicit(&actor->turns_total, memory_order_relaxed) +
                         atomic_load_explicit(&actor->messages_total, memory_order_relaxed);
        bool in_turn = atomic_load(&actor->in_turn);

        if (begun != actor->slow.begun) {
                actor->slow.begun = begun;
                actor->slow.since_ns = now_ns;
                actor->slow.report_ns = slow_ns;
        } else if (in_turn && now_ns - actor->slow.since_ns >= actor->slow.report_ns) {
                actor->slow.report_ns *= 2;
                slow_report(actor, now_ns - actor->slow.since_ns);
        }
        return in_turn;
}

static bool slow_look_at_all(struct tr_system *system) {
        struct tr_target **targets;
        size_t count;
        bool active = false;
        uint64_t now_ns = tr_clock_ns();
        if (tr_registry_list(&system->registry, &targets, &count) < 0)
                return true; /* no memory for a look: the next one will tell */
        for (size_t i = 0; i < count; i++) {
                struct tr_actor *actor = tr_actor_of(targets[i]);
                active |= actor && slow_look(actor, now_ns);
                tr_target_unref(targets[i]);
        }
        free(targets);
        return active;
}

static void slow_watch(struct tr_system *system);

static void on_slow_timer(struct tr_timer *timer) {
        struct tr_system *system = tr_container_of(timer, struct tr_system, slow_timer);
        /* Before the look: a turn that begins behind it then starts the watch anew. */
        atomic_store(&system->slow_watching, false);
        if (slow_look_at_all(system) && !atomic_exchange(&system->slow_watching, true))
                slow_watch(system);
}

static void slow_watch(struct tr_system *system) {
        system->slow_timer.fire = on_slow_timer;
        if (tr_system_set_timer(system, &system->slow_timer, tr_clock_deadline_ns(system->limits.slow_ns / LOOKS)) < 0)
                atomic_store(&system->slow_watching, false);
}

void tr_system_note_turn(struct tr_system *system) {
        /* seq_cst, as is `in_turn`: either the turn sees the end of the watch, or the watch's last look sees the turn */
        if (system->limits.slow_ns == 0 || atomic_load(&system->slow_watching))
                return;
        if (!atomic_exchange(&system->slow_watching, true))
                slow_watch(system);
}
