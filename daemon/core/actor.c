/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Actors: the turn, what it owes to whom, and how an actor ends.
 *
 * Invariants:
 *  - A message that begins is ended by exactly one of resolve, refuse, fault, or the actor's end. It is in the mailbox's list of
 *    what is in hand until a later turn puts it away (INIT and CLOSE are the actor's own, and in no list).
 *  - Whoever settles a message answers. A cancel, a deadline, or a kill that gave up waiting may have settled it long before the
 *    handler returns; what that returns is then dropped here.
 *  - `failure` and `killed` are looked at between messages and never inside: the behaviour comes back to the turn by itself,
 *    because it raised the failure, or because the kill interrupted it.
 */
#include "daemon/core/actor.h"

#include <stdatomic.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/core/cargo.h"

/* Messages that a worker takes, one by one, in one turn: what a turn costs is for as many. */
#define WORKER_TURN_MESSAGES 32

const char *tr_actor_state_text(enum tr_actor_state state) {
        static const char *const texts[] = {
                [TR_ACTOR_STARTING] = "starting",
                [TR_ACTOR_IDLE] = "idle",
                [TR_ACTOR_RUNNING] = "running",
                [TR_ACTOR_WAITING] = "waiting",
                [TR_ACTOR_STOPPING] = "stopping",
                [TR_ACTOR_STUCK] = "stuck",
                [TR_ACTOR_ENDED] = "stopping", /* its last breath: it is not listed any more */
        };
        return texts[state];
}

struct tr_message *tr_actor_take_init(struct tr_actor *actor) {
        tr_lock_acquire(&actor->target.lock);
        struct tr_message *init = tr_steal(actor->init);
        tr_lock_release(&actor->target.lock);
        return init;
}

/* Answers */

static void actor_flush(struct tr_actor *actor) {
        for (uint32_t i = 0; i < actor->flush_count; i++) {
                struct tr_asker *asker = actor->flush[i];
                if (asker->ops->flush)
                        asker->ops->flush(asker);
                asker->ops->unref(asker, 1);
        }
        actor->flush_count = 0;
}

/* Whether an answer to this asker may wait for the end of the turn; if so, it will be flushed then. */
static bool actor_will_flush(struct tr_actor *actor, struct tr_asker *asker) {
        if (!actor->more || !asker->ops->flush)
                return false;
        for (uint32_t i = actor->flush_count; i-- > 0;)
                if (actor->flush[i] == asker)
                        return true;
        if (actor->flush_count == TR_ACTOR_FLUSH_MAX)
                actor_flush(actor);
        asker->ops->ref(asker);
        actor->flush[actor->flush_count++] = asker;
        return true;
}

/* relaxed: a guess for who routes */
static void actor_show_load(struct tr_actor *actor) {
        if (actor->slot)
                atomic_store_explicit(&actor->slot->in_progress, actor->in_progress, memory_order_relaxed);
}

/* One that its pool routed begins: `since_ns` is from now on when that was. */
static void actor_note_begin(struct tr_actor *actor, struct tr_message *message) {
        uint64_t now_ns = actor->now_ns;
        actor->now_ns = 0;
        if (message->since_ns == 0)
                return;
        if (now_ns == 0)
                now_ns = tr_clock_ns();
        tr_times_add(&actor->slot->wait, now_ns > message->since_ns ? now_ns - message->since_ns : 0);
        message->since_ns = now_ns;
        message->timed = true;
}

/* It ends: before anybody hears of that, so that who has an answer finds it counted. The slot of one that was given up is another's. */
static void actor_note_end(struct tr_actor *actor, struct tr_message *message) {
        if (!message->timed || atomic_load_explicit(&actor->state, memory_order_relaxed) == TR_ACTOR_STUCK)
                return;
        message->timed = false;
        actor->now_ns = tr_clock_ns();
        tr_times_add(&actor->slot->run, actor->now_ns - message->since_ns);
}

/* A message has ended: it is put away at the next turn, or, where it is the actor's own, dropped. */
static void actor_put_away(struct tr_actor *actor, struct tr_message *message) {
        actor->in_progress--;
        actor_show_load(actor);
        switch (message->kind) {
        case TR_MESSAGE_INIT:
                tr_message_unref(tr_actor_take_init(actor));
                break;
        case TR_MESSAGE_CLOSE:
                break; /* `closing` keeps it, as the mark that the close handler was called */
        default:
                message->next_in_hand = actor->finished;
                actor->finished = message;
                break;
        }
}

static void actor_announce(struct tr_actor *actor, enum tr_event event, struct tr_failure *failure) {
        tr_system_tell(actor->target.system,
                       &(struct tr_news){ .event = event, .target = &actor->target, .failure = failure });
}

/* States change here only, but for STUCK, which a kill that gave up sets from outside and which stays. */
static void actor_enter_state(struct tr_actor *actor, enum tr_actor_state state) {
        uint32_t before = atomic_load_explicit(&actor->state, memory_order_relaxed);
        while (before != TR_ACTOR_STUCK && before != TR_ACTOR_ENDED &&
               !atomic_compare_exchange_weak_explicit(&actor->state, &before, state, memory_order_relaxed, memory_order_relaxed))
                ;
}

static void actor_show_running(struct tr_actor *actor) {
        if (!atomic_load(&actor->stop_asked))
                actor_enter_state(actor, TR_ACTOR_RUNNING);
}

/* Called before an answer goes out: whoever has it finds an actor that has nothing else in hand at rest, though its turn may
 * not be quite over. */
static void actor_show_rest(struct tr_actor *actor) {
        if (actor->in_progress == 1 && !actor->taken && !atomic_load(&actor->stop_asked))
                actor_enter_state(actor, TR_ACTOR_IDLE);
}

void tr_actor_resolve(struct tr_actor *actor, struct tr_message *message, const void *value, size_t bytes) {
        bool begun;
        if (message->kind == TR_MESSAGE_INIT) {
                actor->started = true;
                actor_announce(actor, TR_EVENT_STARTED, NULL);
                if (actor->slot)
                        tr_slot_started(actor->slot, actor);
        }
        actor_show_rest(actor);
        actor_note_end(actor, message);
        if (tr_message_settle(message, &begun) && message->asker)
                message->asker->ops->resolve(message->asker, message, value, bytes, actor_will_flush(actor, message->asker));
        actor_put_away(actor, message);
}

void tr_actor_reject(struct tr_actor *actor, struct tr_message *message, struct tr_failure *take_failure) {
        bool begun;
        actor_show_rest(actor);
        actor_note_end(actor, message);
        if (tr_message_settle(message, &begun) && message->asker)
                message->asker->ops->reject(message->asker, message, take_failure, take_failure->ran,
                                            actor_will_flush(actor, message->asker));
        tr_failure_unref(take_failure);
        actor_put_away(actor, message);
}

void tr_actor_refuse(struct tr_actor *actor, struct tr_message *message, struct tr_failure *take_failure) {
        const struct tr_refused refused = tr_refused_message(&actor->target, message, take_failure);
        tr_system_tell_refused(actor->target.system, &refused);
        tr_actor_reject(actor, message, take_failure);
}

void tr_actor_fault(struct tr_actor *actor, struct tr_message *message, struct tr_failure *take_failure) {
        if (actor->failure) { /* the first one is what it dies of */
                tr_failure_unref(take_failure);
                return;
        }
        actor->failure = take_failure;
        actor->raised_by = message;
}

/* What an actor asked is answered into its own mailbox. */

static struct tr_actor *actor_of_asker(struct tr_asker *asker) {
        return tr_container_of(asker, struct tr_actor, asker);
}

static void actor_asker_resolve(struct tr_asker *asker, struct tr_message *message, const void *value, size_t bytes, bool more) {
        struct tr_answer *answer = tr_answer_new(message->ask.id, value, bytes);
        if (answer) {
                answer->cargo = tr_message_take_cargo(message);
                answer->foreign = !message->internal; /* as it was asked: in the protocol's form, so by a client */
        }
        tr_mailbox_post_answer(&actor_of_asker(asker)->mailbox, answer);
}

static void actor_asker_reject(struct tr_asker *asker, struct tr_message *message, struct tr_failure *failure, enum tr_ran ran,
                               bool more) {
        /* Before he hears of it. */
        tr_cargo_return(tr_message_take_cargo(message));
        tr_mailbox_post_answer(&actor_of_asker(asker)->mailbox, tr_answer_new_failure(message->ask.id, failure, ran));
}

static void actor_asker_ref(struct tr_asker *asker) {
        tr_target_ref(&actor_of_asker(asker)->target);
}

static void actor_asker_unref(struct tr_asker *asker, uint32_t count) {
        tr_target_unref_many(&actor_of_asker(asker)->target, count);
}

const struct tr_asker_ops tr_actor_asker_ops = {
        .resolve = actor_asker_resolve,
        .reject = actor_asker_reject,
        .ref = actor_asker_ref,
        .unref = actor_asker_unref,
};

/* The turn */

static bool actor_is_doomed(struct tr_actor *actor) {
        return actor->failure || tr_actor_is_killed(actor);
}

static void actor_begin(struct tr_actor *actor, struct tr_message *message) {
        actor->in_progress++;
        actor_show_load(actor);
        /* relaxed: figures for people */
        atomic_fetch_add_explicit(&actor->messages_total, 1, memory_order_relaxed);
        actor->target.system->behaviour->begin(actor->self, message);
}

static void actor_open(struct tr_actor *actor) {
        struct tr_failure *failure = NULL;
        actor->opened = true;
        actor->next_timer_ns = TR_NEVER;
        if (actor->target.system->behaviour->open(actor, &actor->self, &failure) != 0) {
                tr_actor_fault(actor, actor->init,
                               failure ? failure : tr_failure_new(TR_CODE_INTERNAL, "the actor's runtime could not be opened"));
                return;
        }
        if (actor_is_doomed(actor))
                return;
        tr_message_begin(actor->init);
        actor_begin(actor, actor->init);
}

/* New messages are for an actor that has started and is not at its bound of handlers in progress. */
static bool actor_answers_only(const struct tr_actor *actor) {
        return !actor->started || actor->in_progress >= actor->async_max || actor->taken;
}

/* Whether it may take from its pool's queue, were there something. */
static bool actor_may_pull(const struct tr_actor *actor) {
        return actor->slot && !actor->closing && !actor_answers_only(actor);
}

/* A message from the queue of its pool, by turns with those of its own mailbox. */
static struct tr_message *actor_pull(struct tr_actor *actor) {
        /* relaxed: a hint; without one of its own it pulls again */
        bool own_turn = actor->pulled && atomic_load_explicit(&actor->mailbox.has_messages, memory_order_relaxed);
        struct tr_message *message =
                actor_may_pull(actor) && !own_turn ? tr_slot_pull(actor->slot, actor->in_progress == 0) : NULL;
        if (message)
                tr_mailbox_adopt(&actor->mailbox, message);
        actor->pulled = message;
        return message;
}

/* How many it takes at once. A worker takes one, and another when that has begun: what it has not taken when it gets stuck is served
 * by others. */
static uint32_t actor_take_max(const struct tr_actor *actor) {
        if (actor_answers_only(actor))
                return 0;
        return actor->slot ? 1 : TR_MAILBOX_BATCH;
}

/* Whether a worker, which takes one message at a time, will have another one in its next turn: then answers wait for that one's. */
static bool actor_sees_more(struct tr_actor *actor) {
        return actor->slot && !actor->over &&
               (atomic_load_explicit(&actor->mailbox.has_messages, memory_order_relaxed) ||
                (actor->in_progress == 0 && tr_slot_sees_work(actor->slot)));
}

static void actor_run_answers(struct tr_actor *actor, struct tr_list *answers) {
        struct tr_answer *answer;
        if (!tr_list_is_empty(answers) && actor->started)
                actor_show_running(actor);
        tr_list_for_each(answer, answers, link) {
                tr_list_unlink(&answer->link);
                if (actor_is_doomed(actor))
                        tr_answer_free(answer);
                else
                        actor->target.system->behaviour->answered(actor->self, answer);
        }
}

/* Whether a worker has nothing to see to between two messages: no timer, no handler that waits for one, no message of its pool. */
static bool actor_may_go_on(const struct tr_actor *actor) {
        return actor->slot && actor->in_progress == 0 && actor->next_timer_ns == TR_NEVER && !tr_slot_sees_work(actor->slot);
}

/* The next message of a turn. A worker takes it now, where nothing else is to be seen to before. */
static struct tr_message *actor_next_message(struct tr_actor *actor, uint32_t begun) {
        struct tr_message *message = actor->taken;
        if (message)
                actor->taken = message->next_in_hand;
        else if (begun > 0 && begun < WORKER_TURN_MESSAGES && actor_may_go_on(actor))
                message = tr_mailbox_take_next(&actor->mailbox);
        if (message && begun > 0 && actor->slot) /* the answer to the one before has shown it at rest */
                actor_show_running(actor);
        return message;
}

static void actor_run_messages(struct tr_actor *actor) {
        struct tr_message *message;
        uint32_t begun = 0;
        /* An answer in this very turn may have shown it at rest. */
        if (actor->taken)
                actor_show_running(actor);
        while (actor->in_progress < actor->async_max && !actor_is_doomed(actor) && (message = actor_next_message(actor, begun))) {
                begun++;
                actor->more = actor->taken || actor_sees_more(actor);
                if (tr_mailbox_begin(&actor->mailbox, message)) {
                        actor_note_begin(actor, message);
                        actor_begin(actor, message);
                } else {
                        actor->in_progress++;
                        actor_put_away(actor, message);
                }
        }
}

static void actor_run(struct tr_actor *actor) {
        const struct tr_behaviour *behaviour = actor->target.system->behaviour;
        struct tr_list answers = TR_LIST_INIT(answers);
        struct tr_message *finished = actor->finished;

        actor->finished = NULL;
        struct tr_message *pulled = actor_pull(actor);
        struct tr_message *taken = tr_mailbox_take(&actor->mailbox, pulled ? 0 : actor_take_max(actor), finished, &answers);
        if (!actor->taken)
                actor->taken = pulled ? pulled : taken;

        if (atomic_load_explicit(&actor->mailbox.answer_lost, memory_order_acquire))
                tr_actor_fault(actor, NULL, tr_failure_new(TR_CODE_NO_MEMORY, "an answer was lost for want of memory"));
        actor->more = true;
        /* what took a message has looked at the clock */
        bool is_now = (taken || pulled) && tr_list_is_empty(&answers);
        actor_run_answers(actor, &answers);
        actor->now_ns = is_now ? actor->mailbox.last_message_ns : tr_clock_ns();
        if (!actor_is_doomed(actor))
                actor->next_timer_ns = behaviour->run_timers(actor->self, actor->now_ns);
        if (!actor->slot)
                actor_flush(actor); /* what is ready does not wait for what begins now */
        actor_run_messages(actor);
        if (!actor_is_doomed(actor))
                actor->next_timer_ns = behaviour->run_timers(actor->self, actor->now_ns ? actor->now_ns : tr_clock_ns());
}

/* The end */

/* Rejects what the actor owed, leaving nothing in the list. `failure` NULL: it stopped orderly. */
static void actor_reject_list(struct tr_actor *actor, struct tr_list *list, struct tr_failure *failure) {
        struct tr_message *message;
        tr_list_for_each(message, list, link) {
                tr_list_unlink(&message->link);
                enum tr_ran ran = message == actor->raised_by ? failure->ran : TR_RAN_MAYBE;
                if (tr_target_abandon(&actor->target, message, failure, ran))
                        atomic_store(&actor->target.heard, true);
                tr_message_unref(message);
        }
}

/* Moves what was taken and not begun to the front of another list. */
static void take_unbegun(struct tr_list *in_hand, struct tr_list *left) {
        struct tr_list unbegun = TR_LIST_INIT(unbegun);
        struct tr_message *message;
        tr_list_for_each(message, in_hand, link) {
                if (tr_message_state(message) != TR_MESSAGE_QUEUED)
                        continue;
                tr_list_unlink(&message->link);
                tr_list_append(&unbegun, &message->link);
        }
        tr_list_splice(&unbegun, left);
        tr_list_splice(left, &unbegun);
}

void tr_actor_end(struct tr_actor *actor, struct tr_failure *take_failure) {
        struct tr_system *system = actor->target.system;
        struct tr_list queue = TR_LIST_INIT(queue), in_hand = TR_LIST_INIT(in_hand), answers = TR_LIST_INIT(answers);
        struct tr_list left = TR_LIST_INIT(left); /* for the other workers */
        struct tr_failure *owed = take_failure ? tr_failure_ref(take_failure)
                                               : tr_failure_new(TR_CODE_STOPPED, "the actor stopped before it answered this");

        if (take_failure && !actor->started && take_failure->code != TR_CODE_KILLED)
                tr_target_set_stillborn(&actor->target, take_failure);
        tr_mailbox_close_and_take(&actor->mailbox, &queue, &in_hand, &answers);
        if (actor->slot) {
                struct tr_message *message;
                tr_list_for_each(message, &in_hand, link)
                        actor_note_end(actor, message);
                tr_list_splice(&left, &queue);
                take_unbegun(&in_hand, &left);
        }
        tr_actor_clear_stop(actor);
        tr_standstill_leave(actor); /* a kill, in the turn that joined it */
        atomic_store(&actor->state, TR_ACTOR_ENDED);
        atomic_store_explicit(&actor->target.gone, true, memory_order_relaxed);
        /* Before anybody is answered: who hears of the end may start another one under the name at once. */
        tr_registry_withdraw(&system->registry, &actor->target);
        tr_system_keep_count(system, actor);
        tr_system_release_actor(system, actor->target.owner_uid);
        bool left_slot = actor->slot && tr_slot_left(actor->slot, actor, take_failure, &left);
        actor_flush(actor);
        actor_reject_list(actor, &in_hand, owed);
        actor_reject_list(actor, &left, owed);
        actor_reject_list(actor, &queue, owed);
        struct tr_message *init = tr_actor_take_init(actor);
        if (init && tr_message_reject(init, owed, owed->ran) && init->asker)
                atomic_store(&actor->target.heard, true);
        tr_message_unref(init);
        tr_actor_tell_slow(actor, NULL);
        /* Nobody heard of one whose thread never ran. */
        if (actor->opened)
                actor_announce(actor, tr_event_of_end(take_failure), take_failure);
        tr_target_end(&actor->target, take_failure);
        if (left_slot)
                tr_slot_gone(actor->slot);

        struct tr_answer *answer;
        tr_list_for_each(answer, &answers, link) {
                tr_list_unlink(&answer->link);
                tr_answer_free(answer);
        }
        tr_message_unref(actor->closing);
        actor->closing = NULL;
        actor->taken = actor->finished = NULL; /* they were in hand */
        if (actor->self)
                system->behaviour->free(actor->self);
        actor->self = NULL;
        tr_failure_unref(owed);
        tr_failure_unref(take_failure);
        actor->over = true;
}

/* Calls the actor's close handler, once. Without memory for the call there is none, and the actor ends as if it had none. */
static void actor_close(struct tr_actor *actor) {
        const char *reason = tr_stop_reason_text((enum tr_stop_reason)(atomic_load(&actor->stop_reason) - 1));
        struct tr_writer argument = TR_WRITER_INIT;
        tr_write_text(&argument, reason);
        if (!tr_writer_error(&argument))
                actor->closing = tr_message_new(TR_MESSAGE_CLOSE, "close", strlen("close"), argument.data, argument.len, 1);
        tr_writer_deinit(&argument);
        if (!actor->closing)
                return;
        actor->closing->internal = true;
        tr_message_begin(actor->closing);
        actor_begin(actor, actor->closing);
        /* the turn is past its timers: what this one waits for would not be waited for */
        if (!actor_is_doomed(actor))
                actor->next_timer_ns = actor->target.system->behaviour->run_timers(actor->self, tr_clock_ns());
}

/* Whether nothing is queued. After the mailbox was closed it stays so: the lock under which that happened is behind us. */
static bool actor_is_drained(struct tr_actor *actor) {
        return atomic_load_explicit(&actor->mailbox.messages, memory_order_relaxed) == 0;
}

/* Handlers that are in progress still were given up before. */
static bool actor_has_closed(struct tr_actor *actor) {
        return actor->closing && tr_message_state(actor->closing) == TR_MESSAGE_SETTLED;
}

/* One step of an orderly stop. True where the actor is to end now. */
static bool actor_stop_step(struct tr_actor *actor) {
        if (!actor->drained) {
                actor->drained = true;
                actor->target.system->behaviour->drain(actor->self);
        }
        /* more can begin */
        if (actor->started && !actor_is_drained(actor) && actor->in_progress < actor->async_max)
                return false;
        if (actor_may_pull(actor) && tr_slot_has_work(actor->slot))
                return false;
        if (actor_has_closed(actor))
                return true;
        if (actor->in_progress > 0 && !tr_standstill_reached(actor))
                return false;
        if (actor->closing || !actor->started)
                return true;
        actor_close(actor);
        if (actor_is_doomed(actor))
                return false;
        return !actor->closing || actor_has_closed(actor) || tr_standstill_reached(actor);
}

/* A program is over when its main has returned and nothing is pending in it. */
static bool actor_program_is_over(struct tr_actor *actor) {
        return actor->program && actor->started && actor->in_progress == 0 && actor_is_drained(actor) &&
               actor->target.system->behaviour->pending(actor->self) == 0;
}

/* Decides, after the actor's code has run, whether it lives on. */
static void actor_judge(struct tr_actor *actor) {
        if (tr_actor_is_killed(actor)) {
                tr_failure_unref(tr_steal(actor->failure)); /* it raised too, on its way out */
                tr_actor_end(actor, tr_failure_new(TR_CODE_KILLED, "the actor was killed"));
        } else if (actor->failure) {
                tr_actor_end(actor, tr_steal(actor->failure));
        } else if (actor_program_is_over(actor)) {
                tr_actor_end(actor, NULL);
        } else if (atomic_load(&actor->stop_asked)) {
                bool over = actor_stop_step(actor);
                if (actor_is_doomed(actor)) /* the close handler raised, or was killed */
                        actor_judge(actor);
                else if (over)
                        tr_actor_end(actor, NULL);
        }
}

static enum tr_actor_state actor_resting_state(struct tr_actor *actor) {
        if (atomic_load(&actor->stop_asked))
                return TR_ACTOR_STOPPING;
        if (!actor->started)
                return TR_ACTOR_STARTING;
        return actor->in_progress > 0 ? TR_ACTOR_WAITING : TR_ACTOR_IDLE;
}

/* Whether the turn has nothing to do but to put away what is finished: whoever has an answer finds the actor at rest meanwhile. What
 * comes in this moment is noticed where it is run. */
static bool actor_only_tidies(const struct tr_actor *actor) {
        return actor->finished && !actor->taken && actor->next_timer_ns == TR_NEVER && tr_mailbox_seems_empty(&actor->mailbox);
}

void tr_actor_turn(struct tr_actor *actor) {
        tr_standstill_leave(actor);
        if (actor->started && !actor_only_tidies(actor))
                actor_show_running(actor);
        /* relaxed: who watches for slow handlers only compares it with what it saw before */
        atomic_fetch_add_explicit(&actor->turns_total, 1, memory_order_relaxed);
        /* seq_cst, as is `killed`: either the kill sees the turn and signals it, or the turn sees the kill */
        atomic_store(&actor->in_turn, true);
        tr_system_note_turn(actor->target.system);
        if (actor->slot)
                tr_slot_wake(actor->slot);
        if (!atomic_load(&actor->killed)) {
                if (!actor->opened)
                        actor_open(actor);
                if (!actor_is_doomed(actor))
                        actor_run(actor);
        }
        actor_judge(actor);
        if (!actor_sees_more(actor))
                actor_flush(actor);
        atomic_store(&actor->in_turn, false);
        actor_enter_state(actor, actor_resting_state(actor));
}

void tr_actor_wait(struct tr_actor *actor) {
        /* What a bound on handlers in progress kept back begins as soon as one of them ends. */
        if (actor->taken && actor->in_progress < actor->async_max)
                return;
        /* What is finished is put away first, by one more turn, so that an idle actor keeps nothing of anybody. */
        if (actor->finished)
                return;
        if (actor_may_pull(actor) && tr_slot_rest(actor->slot, actor->in_progress == 0))
                return;
        /* What it was called for and cannot take now, because it has begun something else, is for who is free. */
        if (actor->slot && tr_slot_sees_work(actor->slot))
                tr_pool_call_free(actor->slot->pool);
        tr_mailbox_wait(&actor->mailbox, actor_answers_only(actor), actor->next_timer_ns);
}
