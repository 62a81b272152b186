/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stopping and killing actors from outside. Both travel beside the mailbox's
 * limits: a flag, and a call for attention.
 *
 * A kill reaches code that is running by a signal to the actor's thread, whose
 * handler asks the behaviour to make it give up at its next instruction. One
 * signal can fall between a check and a system call, or into a switch of
 * coroutines; so it is repeated until the turn has ended. An actor that does
 * not return (a long C function) is marked stuck: its askers are answered, its
 * name is free, its session goes on without it, and whenever it comes back it
 * ends.
 *
 * Each timer holds a reference to the actor while it is set.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/core/actor.h"
#include "daemon/core/cargo.h"

/* The report of a slow handler has a signal of its own, after which system calls go on. */
#define KILL_SIGNAL SIGUSR1
#define REPORT_SIGNAL SIGUSR2
#define KILL_REPEAT_NS (20 * TR_NS_PER_MS)
/* Signals until an actor counts as stuck: one second. */
#define KILL_SIGNALS_STUCK 50
/* How often a stuck one is tried. */
#define KILL_STUCK_REPEAT_NS TR_NS_PER_S

/* Read by the signal handler, on the thread whose it is: local-exec in the daemon, so no allocation hides in the access. */
static _Thread_local struct tr_actor *current_actor;

struct tr_actor *tr_actor_current(void) {
        return current_actor;
}

void tr_actor_set_current(struct tr_actor *actor) {
        current_actor = actor;
        /* The handler runs on this thread: the compiler must not move the store past what it protects. */
        atomic_signal_fence(memory_order_seq_cst);
}

static void on_signal(int signal) {
        int saved_errno = errno;
        struct tr_actor *actor = current_actor;
        if (actor && atomic_load(&actor->in_turn) && actor->self) {
                const struct tr_behaviour *behaviour = actor->target.system->behaviour;
                if (atomic_load(&actor->killed))
                        behaviour->interrupt(actor->self);
                else if (signal == REPORT_SIGNAL && behaviour->report)
                        behaviour->report(actor->self);
        }
        errno = saved_errno;
}

int tr_actor_install_signal(void) {
        /* No SA_RESTART: a blocking system call is to come back. */
        struct sigaction action = { .sa_handler = on_signal };
        sigemptyset(&action.sa_mask);
        if (sigaction(KILL_SIGNAL, &action, NULL) < 0)
                return tr_error_origin(-errno);
        action.sa_flags = SA_RESTART;
        if (sigaction(REPORT_SIGNAL, &action, NULL) < 0)
                return tr_error_origin(-errno);
        return 0;
}

void tr_actor_unblock_signals(sigset_t *mask) {
        sigdelset(mask, KILL_SIGNAL);
        sigdelset(mask, REPORT_SIGNAL);
}

static void actor_signal(struct tr_actor *actor, int signal) {
        tr_lock_acquire(&actor->target.lock);
        if (!actor->thread_over && atomic_load(&actor->in_turn))
                pthread_kill(actor->thread, signal);
        tr_lock_release(&actor->target.lock);
}

void tr_actor_ask_report(struct tr_actor *actor) {
        actor_signal(actor, REPORT_SIGNAL);
}

static bool actor_has_ended(struct tr_actor *actor) {
        return atomic_load(&actor->state) == TR_ACTOR_ENDED;
}

/* A reference to the init message; NULL where it has ended. It stays the actor's, whose thread may be in the middle of it. */
static struct tr_message *actor_init_ref(struct tr_actor *actor) {
        tr_lock_acquire(&actor->target.lock);
        struct tr_message *init = actor->init ? tr_message_ref(actor->init) : NULL;
        tr_lock_release(&actor->target.lock);
        return init;
}

static void drop_sends(struct tr_actor *actor, struct tr_message *take_chain, struct tr_failure *failure) {
        while (take_chain) {
                struct tr_message *next = take_chain->next_rejected;
                tr_target_tell_dropped(&actor->target, take_chain, failure);
                tr_message_unref(take_chain);
                take_chain = next;
        }
}

/* Everybody who waits for it is told; it ends by itself should it come back. */
static void actor_give_up(struct tr_actor *actor) {
        struct tr_system *system = actor->target.system;
        uint32_t state = atomic_load(&actor->state);
        do {
                if (state == TR_ACTOR_ENDED)
                        return;
        } while (!atomic_compare_exchange_weak(&actor->state, &state, TR_ACTOR_STUCK));

        char handle[TR_HANDLE_SHORT + 1];
        struct tr_log_context context = tr_target_log_context(&actor->target, handle);
        tr_log_with(TR_LOG_WARNING, &context,
                    "the actor was killed and does not return from a C function: it is stuck");
        tr_system_tell(system, &(struct tr_news){ .event = TR_EVENT_STUCK, .target = &actor->target });

        tr_registry_withdraw(&system->registry, &actor->target);
        struct tr_failure *failure = tr_failure_new(TR_CODE_KILLED, "the actor was killed");
        struct tr_message *init = actor_init_ref(actor);
        if (init) {
                tr_message_reject(init, failure, failure->ran);
                tr_cargo_return(tr_message_take_cargo(init));
        }
        tr_message_unref(init);
        struct tr_list left = TR_LIST_INIT(left);
        bool left_slot = false;
        if (actor->slot) {
                tr_mailbox_close_and_take_queue(&actor->mailbox, &left);
                left_slot = tr_slot_left(actor->slot, actor, failure, &left);
        }
        drop_sends(actor, tr_mailbox_reject_all(&actor->mailbox, failure), failure);
        struct tr_message *message;
        tr_list_for_each(message, &left, link) {
                tr_list_unlink(&message->link);
                tr_target_abandon(&actor->target, message, failure, TR_RAN_NO);
                tr_message_unref(message);
        }
        tr_target_end(&actor->target, failure);
        if (left_slot)
                tr_slot_gone(actor->slot);
        tr_failure_unref(failure);
}

static void actor_repeat_kill(struct tr_actor *actor);

/* Drops the timer's reference, or hands it on to the next one. */
static void on_kill_timer(struct tr_timer *timer) {
        struct tr_actor *actor = tr_container_of(timer, struct tr_actor, kill_timer);
        if (!actor_has_ended(actor)) {
                actor_signal(actor, KILL_SIGNAL);
                if (atomic_load(&actor->in_turn) && ++actor->kill_signals == KILL_SIGNALS_STUCK)
                        actor_give_up(actor);
                actor_repeat_kill(actor);
        }
        tr_target_unref(&actor->target);
}

static void actor_repeat_kill(struct tr_actor *actor) {
        uint64_t after_ns = actor->kill_signals < KILL_SIGNALS_STUCK ? KILL_REPEAT_NS : KILL_STUCK_REPEAT_NS;
        tr_target_ref(&actor->target);
        actor->kill_timer.fire = on_kill_timer;
        if (tr_system_set_timer(actor->target.system, &actor->kill_timer, tr_clock_deadline_ns(after_ns)) != 0)
                tr_target_unref(&actor->target);
}

void tr_actor_kill(struct tr_target *target) {
        struct tr_actor *actor = (struct tr_actor *)target;
        if (tr_target_has_ended(target) || atomic_exchange(&actor->killed, true))
                return;
        tr_mailbox_close(&actor->mailbox);
        tr_mailbox_call_attention(&actor->mailbox);
        actor_signal(actor, KILL_SIGNAL);
        actor_repeat_kill(actor);
}

static void on_stop_timer(struct tr_timer *timer) {
        struct tr_actor *actor = tr_container_of(timer, struct tr_actor, stop_timer);
        tr_actor_kill(&actor->target);
        tr_target_unref(&actor->target);
}

void tr_actor_clear_stop(struct tr_actor *actor) {
        if (tr_system_clear_timer(actor->target.system, &actor->stop_timer))
                tr_target_unref(&actor->target);
}

void tr_actor_stop(struct tr_target *target, enum tr_stop_reason reason, uint64_t within_ns) {
        struct tr_actor *actor = (struct tr_actor *)target;
        if (tr_target_has_ended(target))
                return;
        /* A program's main is no handler that others wait for: it is interrupted. */
        if (actor->program) {
                tr_actor_kill(target);
                return;
        }
        if (within_ns != TR_NEVER) {
                tr_target_ref(target);
                actor->stop_timer.fire = on_stop_timer;
                if (tr_system_set_timer(target->system, &actor->stop_timer, tr_clock_deadline_ns(within_ns)) != 0)
                        tr_target_unref(target);
        }
        uint32_t none = 0;
        atomic_compare_exchange_strong(&actor->stop_reason, &none, (uint32_t)reason + 1);
        tr_mailbox_close(&actor->mailbox);
        atomic_store(&actor->stop_asked, true);
        tr_mailbox_call_attention(&actor->mailbox);
}
