/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting an actor: room for it, its name, its session, its thread; in that
 * order, and back in reverse where one cannot be had. And what an actor is as a
 * target.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/thread.h"
#include "daemon/core/actor.h"
#include "daemon/core/replica.h"
#include "daemon/core/stock.h"

/* Lua's own limit of C recursion needs 421 KiB; what is not touched costs nothing. Sanitizers make frames larger. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_BYTES ((size_t)8 << 20)
#else
#define STACK_BYTES ((size_t)1 << 20)
#endif
/* How much of it is given back once the code is loaded; loading seldom goes deeper. */
#define STACK_DROPPED_BYTES ((size_t)256 << 10)
/* At least what the frame of who gives it back, and the call that it makes, are using. */
#define STACK_OWN_BYTES 1024u

/* As a target */

static enum tr_post actor_post(struct tr_target *target, struct tr_list *messages) {
        return tr_mailbox_post(&((struct tr_actor *)target)->mailbox, messages);
}

static bool actor_is_busy(struct tr_target *target) {
        struct tr_actor *actor = (struct tr_actor *)target;
        /* relaxed: a hint */
        return atomic_load_explicit(&actor->in_turn, memory_order_relaxed) ||
               atomic_load_explicit(&actor->mailbox.has_messages, memory_order_relaxed);
}

/* Milliseconds of CPU time of its thread; 0 once it is over. */
static int64_t actor_cpu_ms(struct tr_actor *actor) {
        clockid_t clock;
        struct timespec time = { 0 };
        tr_lock_acquire(&actor->target.lock);
        if (!actor->thread_over && pthread_getcpuclockid(actor->thread, &clock) == 0)
                clock_gettime(clock, &time);
        tr_lock_release(&actor->target.lock);
        return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static uint32_t actor_info(struct tr_target *target, struct tr_writer *writer) {
        struct tr_actor *actor = (struct tr_actor *)target;
        struct tr_mailbox *mailbox = &actor->mailbox;
        uint32_t pairs = 0;
        const struct {
                const char *key;
                uint64_t value;
        } figures[] = {
                { "mailbox", atomic_load_explicit(&mailbox->messages, memory_order_relaxed) },
                { "mailbox_max", mailbox->messages_max },
                { "mailbox_bytes", atomic_load_explicit(&mailbox->bytes, memory_order_relaxed) },
                { "mailbox_bytes_max", mailbox->bytes_max },
                { "heap", atomic_load_explicit(&actor->heap_bytes, memory_order_relaxed) },
                { "heap_max", actor->heap_max_bytes },
                { "messages", atomic_load_explicit(&actor->messages_total, memory_order_relaxed) },
                { "faults", 0 }, /* it dies of its first; where others take its place, they are counted together */
                { "cpu", (uint64_t)actor_cpu_ms(actor) },
        };

        tr_write_text(writer, "state");
        tr_write_text(writer, tr_actor_state_text((enum tr_actor_state)atomic_load(&actor->state)));
        pairs++;
        for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
                tr_write_text(writer, figures[i].key);
                tr_write_uint(writer, figures[i].value);
                pairs++;
        }
        char handler[TR_HANDLER_SHOWN_MAX + 1];
        if (tr_mailbox_current_handler(mailbox, handler, sizeof(handler))) {
                tr_write_text(writer, "handler");
                tr_write_string(writer, handler, strlen(handler));
                pairs++;
        }
        if (actor->slot) {
                tr_write_text(writer, "pool");
                tr_write_text(writer, actor->slot->pool->target.label);
                pairs++;
        }
        if (actor->replica)
                pairs += tr_replica_write_pairs(actor->replica, writer);
        const struct tr_behaviour *behaviour = target->system->behaviour;
        return pairs + (behaviour->info ? behaviour->info(actor, writer) : 0);
}

static void actor_free(struct tr_target *target) {
        struct tr_actor *actor = (struct tr_actor *)target;
        tr_mailbox_deinit(&actor->mailbox);
        tr_target_deinit(target);
        free(actor->behaviour_info);
        free(atomic_load(&actor->slow_report)); /* a look that came with the end */
        if (actor->slot)
                tr_target_unref(&actor->slot->pool->target);
        tr_replica_unref(actor->replica);
        free(actor);
}

const struct tr_target_ops tr_actor_target_ops = {
        .kind = TR_TARGET_ACTOR,
        .post = actor_post,
        .stop = tr_actor_stop,
        .kill = tr_actor_kill,
        .info = actor_info,
        .is_busy = actor_is_busy,
        .free = actor_free,
};

const struct tr_target_ops tr_worker_target_ops = {
        .kind = TR_TARGET_WORKER,
        .post = actor_post,
        .stop = tr_actor_stop,
        .kill = tr_actor_kill,
        .info = actor_info,
        .is_busy = actor_is_busy,
        .free = actor_free,
};

/* A replica gives its name up first of all, whoever stops it. */
static void replica_stop(struct tr_target *target, enum tr_stop_reason reason, uint64_t within_ns) {
        tr_replica_retire(((struct tr_actor *)target)->replica);
        tr_actor_stop(target, reason, within_ns);
}

const struct tr_target_ops tr_replica_target_ops = {
        .kind = TR_TARGET_REPLICA,
        .post = actor_post,
        .stop = replica_stop,
        .kill = tr_actor_kill,
        .info = actor_info,
        .is_busy = actor_is_busy,
        .free = actor_free,
};

/* Its thread */

/*
 * Gives back the stack below here. Compiling goes deeper than most handlers do, and a page that was touched once would stay: a
 * twelfth of what an idle actor needs.
 */
__attribute__((noinline)) static void actor_drop_stack(void) {
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
        uintptr_t end = ((uintptr_t)__builtin_frame_address(0) - STACK_OWN_BYTES) & ~(page - 1);

        (void)madvise((void *)(end - STACK_DROPPED_BYTES), STACK_DROPPED_BYTES, MADV_DONTNEED);
}

/* Behind the first turn, when whoever waits for the actor has been answered. */
static void actor_trim(struct tr_actor *actor) {
        const struct tr_behaviour *behaviour = actor->target.system->behaviour;
        if (!actor->over && behaviour->trim)
                behaviour->trim(actor->self);
        actor_drop_stack();
}

static void *actor_thread(void *data) {
        struct tr_actor *actor = data;
        tr_thread_enter(TR_THREAD_ACTOR, actor->target.label);
        tr_actor_set_current(actor);
        tr_actor_turn(actor); /* which loads its code */
        actor_trim(actor);
        while (!actor->over) {
                tr_actor_wait(actor);
                tr_actor_turn(actor);
        }
        tr_actor_set_current(NULL);

        tr_lock_acquire(&actor->target.lock);
        actor->thread_over = true;
        tr_lock_release(&actor->target.lock);
        tr_system_reap(actor->target.system, actor);
        tr_stock_hand_in();
        return NULL;
}

/* Starts the thread with every signal blocked but those that are for it. 0 or a positive errno, as pthread_create() has it. */
static int actor_start_thread(struct tr_actor *actor) {
        struct tr_system *system = actor->target.system;
        pthread_attr_t attributes;
        sigset_t mask;

        int r = pthread_attr_init(&attributes);
        if (r != 0)
                return r;
        sigfillset(&mask);
        tr_actor_unblock_signals(&mask);
        r = pthread_attr_setstacksize(&attributes, STACK_BYTES);
        if (r == 0)
                r = pthread_attr_setsigmask_np(&attributes, &mask);

        tr_lock_acquire(&system->lock);
        system->threads++;
        tr_lock_release(&system->lock);
        /* Under the lock, because a kill may come, by a published name, before this has returned. */
        tr_lock_acquire(&actor->target.lock);
        if (r == 0)
                r = pthread_create(&actor->thread, &attributes, actor_thread, actor);
        actor->thread_over = r != 0;
        tr_lock_release(&actor->target.lock);
        if (r != 0) {
                tr_lock_acquire(&system->lock);
                system->threads--;
                tr_lock_release(&system->lock);
        }
        pthread_attr_destroy(&attributes);
        return r;
}

static struct tr_actor *actor_new(struct tr_system *system, const struct tr_actor_options *options) {
        const struct tr_system_limits *limits = &system->limits;
        struct tr_actor *actor = calloc(1, sizeof(*actor));
        if (!actor)
                return NULL;
        const char *label = options->label ? options->label : options->actor;
        const struct tr_target_ops *ops = options->slot      ? &tr_worker_target_ops :
                                          options->replica ? &tr_replica_target_ops :
                                                             &tr_actor_target_ops;
        if (tr_target_init(&actor->target, ops, system, options->owner_uid, label, options->actor) < 0) {
                free(actor);
                return NULL;
        }
        actor->target.owner_pid = options->owner_pid;
        actor->asker.ops = &tr_actor_asker_ops;
        tr_mailbox_init(&actor->mailbox, options->mailbox ? options->mailbox : limits->mailbox,
                        options->mailbox_bytes ? options->mailbox_bytes : limits->mailbox_bytes);
        tr_list_init(&actor->reap_link);
        tr_list_init(&actor->standing.link);
        actor->heap_max_bytes = options->heap_bytes ? options->heap_bytes : limits->heap_bytes;
        actor->async_max = options->async ? options->async : limits->async;
        actor->program = options->program;
        actor->slot = options->slot;
        if (actor->slot)
                tr_target_ref(&actor->slot->pool->target);
        if (options->replica)
                actor->replica = tr_replica_ref(options->replica);
        actor->next_timer_ns = TR_NEVER;
        actor->thread_over = true;
        return actor;
}

/* NULL, or why the name could not be had. */
static struct tr_failure *actor_name_failure(int r, const char *name) {
        if (r == TR_REGISTRY_TAKEN)
                return tr_failure_new(TR_CODE_TAKEN, "the name %s is published already", name);
        return r == 0 ? NULL : tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
}

/* Registered, with its names, in its session. NULL, or why not. */
static struct tr_failure *actor_introduce(struct tr_actor *actor, struct tr_session *session,
                                          const struct tr_actor_options *options, struct tr_target **ret_holder) {
        struct tr_registry *registry = &actor->target.system->registry;
        struct tr_failure *failure = NULL;
        if (tr_registry_add(registry, &actor->target) < 0)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
        for (const char *const *name = options->keep; name && *name && !failure; name++)
                failure = actor_name_failure(tr_registry_keep(registry, *name, strlen(*name), &actor->target.keeper), *name);
        if (!failure && options->publish)
                failure = actor_name_failure(tr_registry_publish(registry, options->publish, strlen(options->publish), &actor->target,
                                                                 options->keeper, ret_holder), options->publish);
        if (!failure)
                tr_session_join(session, &actor->target);
        return failure;
}

struct tr_failure *tr_actor_spawn(struct tr_system *system, struct tr_session *session, const struct tr_actor_options *options,
                                  struct tr_message *take_init, struct tr_target **ret_target, struct tr_target **ret_holder) {
        struct tr_failure *failure = tr_system_reserve_actor(system, options->owner_uid);
        if (failure) {
                tr_message_unref(take_init);
                return failure;
        }
        struct tr_actor *actor = actor_new(system, options);
        if (!actor) {
                tr_system_release_actor(system, options->owner_uid);
                tr_message_unref(take_init);
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
        }
        /* One reference is the thread's, until it is joined; one the caller's. */
        struct tr_target *target = tr_target_ref(&actor->target);

        failure = actor_introduce(actor, session, options, ret_holder);
        if (!failure) {
                take_init->spawned = tr_target_ref(target);
                tr_lock_acquire(&target->lock);
                actor->init = take_init;
                tr_lock_release(&target->lock);
                int r = 0;
                if (actor->slot)
                        tr_slot_enter(actor->slot, actor);
                if (actor->replica)
                        tr_replica_enter(actor->replica, target);
                if (system->hooks.run)
                        system->hooks.run(system->hooks.userdata, actor);
                else
                        r = actor_start_thread(actor);
                if (r == 0) {
                        *ret_target = target;
                        return NULL;
                }
                failure = tr_failure_new(TR_CODE_LIMIT, "no thread for another actor: %s", strerrordesc_np(r));
                take_init = tr_actor_take_init(actor);
        }

        /* The caller answers for the init message; whoever found the name meanwhile is answered here. */
        tr_message_unref(take_init);
        tr_actor_end(actor, tr_failure_ref(failure));
        tr_target_unref(target);
        tr_target_unref(target);
        return failure;
}
