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
 *
 * The event of a report waits for what the actor says of where it is, at its next instruction. Where that does not come
 * within a second, before the handler's end or before the next report, it is told without.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/core/actor.h"

/* How long an actor may take to say where it is; on a busy machine it may be long until it runs at all. */
#define SAYS_WHERE_NS TR_NS_PER_S
/* Looks within the time that counts as slow. */
#define LOOKS 8

/* A report that is to be told when the actor has said where it is. */
struct tr_slow_report {
        uint64_t running_ns;
        bool knows_handler;
        char handler[TR_HANDLER_SHOWN_MAX + 1];
};

static void slow_tell(struct tr_actor *actor, const struct tr_slow_report *report, const char *traceback) {
        const struct tr_news news = {
                .event = TR_EVENT_SLOW,
                .target = &actor->target,
                .handler = report->knows_handler ? report->handler : NULL,
                .running_ns = report->running_ns,
                .traceback = traceback,
        };
        tr_system_tell(actor->target.system, &news);
}

void tr_actor_tell_slow(struct tr_actor *actor, const char *traceback) {
        struct tr_slow_report *report = atomic_exchange(&actor->slow_report, NULL);
        if (report)
                slow_tell(actor, report, traceback);
        free(report);
}

static void slow_report(struct tr_actor *actor, uint64_t running_ns) {
        char handle[TR_HANDLE_SHORT + 1];
        struct tr_log_context context = tr_target_log_context(&actor->target, handle);
        struct tr_slow_report report = { .running_ns = running_ns };
        report.knows_handler = tr_mailbox_current_handler(&actor->mailbox, report.handler, sizeof(report.handler));
        tr_log_with(TR_LOG_WARNING, &context, "%s has been running for %llu s",
                    report.knows_handler ? report.handler : "its code", (unsigned long long)(running_ns / TR_NS_PER_S));

        struct tr_slow_report *kept = malloc(sizeof(*kept));
        if (!kept) {
                slow_tell(actor, &report, NULL);
                return;
        }
        *kept = report;
        tr_actor_tell_slow(actor, NULL); /* of the report before this, if the actor has still not said where it is */
        atomic_store(&actor->slow_report, kept);
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
                tr_actor_tell_slow(actor, NULL);
                actor->slow.begun = begun;
                actor->slow.since_ns = now_ns;
                actor->slow.report_ns = slow_ns;
        } else if (in_turn && now_ns - actor->slow.since_ns >= actor->slow.report_ns) {
                actor->slow.report_ns *= 2;
                actor->slow.reported_ns = now_ns;
                slow_report(actor, now_ns - actor->slow.since_ns);
        } else if (!in_turn || now_ns - actor->slow.reported_ns >= SAYS_WHERE_NS) {
                tr_actor_tell_slow(actor, NULL);
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
