/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_behaviour.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/clock.h"

#define HELD_MAX 2048

struct fake_self {
        struct tr_actor *actor;
        struct fake_shared *shared;
        _Atomic bool interrupted;
        int count;
        struct tr_message *held[HELD_MAX];
        int held_count;
};

static const uint8_t nil_value = 0xc0;

void fake_shared_init(struct fake_shared *shared) {
        *shared = (struct fake_shared){ 0 };
        sem_init(&shared->entered, 0, 0);
        sem_init(&shared->go, 0, 0);
}

static int fake_open(struct tr_actor *actor, void **ret_self, struct tr_failure **ret_failure) {
        struct fake_shared *shared = actor->target.system->behaviour_shared;
        if (strcmp(actor->target.actor, "broken") == 0) {
                *ret_failure = tr_failure_new(TR_CODE_LOAD, "it does not load");
                return 1;
        }
        struct fake_self *self = calloc(1, sizeof(*self));
        if (!self) {
                *ret_failure = tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
                return 1;
        }
        self->actor = actor;
        self->shared = shared;
        atomic_fetch_add(&shared->opened, 1);
        *ret_self = self;
        return 0;
}

static void fake_wait_go(struct fake_self *self, bool deaf) {
        sem_post(&self->shared->entered);
        while (sem_wait(&self->shared->go) < 0)
                if (!deaf && atomic_load(&self->interrupted))
                        return;
}

static void fake_begin(void *data, struct tr_message *message) {
        struct fake_self *self = data;
        struct tr_actor *actor = self->actor;
        const char *handler = tr_message_handler(message);

        if (message->kind == TR_MESSAGE_CLOSE) {
                atomic_fetch_add(&self->shared->closed, 1);
                tr_actor_resolve(actor, message, &nil_value, 1);
        } else if (message->kind == TR_MESSAGE_INIT) {
                if (strcmp(actor->target.actor, "bad-init") == 0)
                        tr_actor_fault(actor, message, tr_failure_new(TR_CODE_FAULT, "bad init"));
                else if (strcmp(actor->target.actor, "slow-init") == 0)
                        self->held[self->held_count++] = message;
                else {
                        if (strcmp(actor->target.actor, "stuck-init") == 0)
                                fake_wait_go(self, true);
                        tr_actor_resolve(actor, message, &nil_value, 1);
                }
        } else if (strcmp(handler, "echo") == 0) {
                tr_actor_resolve(actor, message, tr_message_args(message), message->args_bytes);
        } else if (strcmp(handler, "count") == 0) {
                struct tr_writer writer = TR_WRITER_INIT;
                tr_write_int(&writer, ++self->count);
                tr_actor_resolve(actor, message, writer.data, writer.len);
                tr_writer_deinit(&writer);
        } else if (strcmp(handler, "large") == 0) {
                static const char large[FAKE_LARGE_BYTES];
                struct tr_writer writer = TR_WRITER_INIT;
                tr_write_str(&writer, large, sizeof(large));
                tr_actor_resolve(actor, message, writer.data, writer.len);
                tr_writer_deinit(&writer);
        } else if (strcmp(handler, "nothing") == 0) {
                tr_actor_resolve(actor, message, &nil_value, 1);
        } else if (strcmp(handler, "fault") == 0) {
                tr_actor_fault(actor, message, tr_failure_new(TR_CODE_FAULT, "it broke"));
        } else if (strcmp(handler, "hold") == 0) {
                self->held[self->held_count++] = message;
        } else if (strcmp(handler, "release") == 0) {
                for (int i = 0; i < self->held_count; i++)
                        tr_actor_resolve(actor, self->held[i], &nil_value, 1);
                self->held_count = 0;
                tr_actor_resolve(actor, message, &nil_value, 1);
        } else if (strcmp(handler, "block") == 0 || strcmp(handler, "stuck") == 0) {
                fake_wait_go(self, handler[0] == 's');
                tr_actor_resolve(actor, message, &nil_value, 1);
        } else {
                tr_actor_refuse(actor, message, tr_failure_new(TR_CODE_NO_SUCH_HANDLER, "no handler %s", handler));
        }
}

static void fake_answered(void *data, struct tr_answer *take_answer) {
        struct fake_self *self = data;
        for (int i = 0; i < self->held_count; i++)
                tr_actor_resolve(self->actor, self->held[i], &nil_value, 1);
        self->held_count = 0;
        tr_answer_free(take_answer);
}

static uint64_t fake_run_timers(void *self, uint64_t now_ns) {
        return TR_NEVER;
}

static uint32_t fake_pending(void *self) {
        return 0;
}

static bool fake_awaits(void *self, struct tr_awaited *awaited) {
        return false;
}

static void fake_drain(void *self) {}

static void fake_free(void *data) {
        struct fake_self *self = data;
        atomic_fetch_add(&self->shared->freed, 1);
        free(self);
}

static void fake_interrupt(void *data) {
        atomic_store(&((struct fake_self *)data)->interrupted, true);
}

static void fake_report(void *data) {
        atomic_fetch_add(&((struct fake_self *)data)->shared->reported, 1);
}

const struct tr_behaviour fake_behaviour = {
        .open = fake_open,
        .begin = fake_begin,
        .answered = fake_answered,
        .run_timers = fake_run_timers,
        .pending = fake_pending,
        .awaits = fake_awaits,
        .drain = fake_drain,
        .free = fake_free,
        .interrupt = fake_interrupt,
        .report = fake_report,
};

static void fake_asker_add(struct tr_asker *asker, const struct fake_outcome *outcome) {
        struct fake_asker *fake = (struct fake_asker *)asker;
        pthread_mutex_lock(&fake->lock);
        if (fake->count == FAKE_OUTCOMES_MAX) /* not ck_assert(), which allocates, and allocations may be failing */
                abort();
        fake->outcomes[fake->count++] = *outcome;
        pthread_cond_broadcast(&fake->changed);
        pthread_mutex_unlock(&fake->lock);
}

static void fake_asker_resolve(struct tr_asker *asker, struct tr_message *message, const void *value, size_t bytes,
                               bool more) {
        struct fake_outcome outcome = { .id = message->ask.id, .resolved = true, .bytes = bytes };
        memcpy(outcome.value, value, bytes < sizeof(outcome.value) ? bytes : sizeof(outcome.value));
        fake_asker_add(asker, &outcome);
}

static void fake_asker_reject(struct tr_asker *asker, struct tr_message *message, struct tr_failure *failure,
                              enum tr_ran ran, bool more) {
        struct fake_outcome outcome = { .id = message->ask.id, .code = failure->code, .ran = ran };
        fake_asker_add(asker, &outcome);
}

static void fake_asker_ref(struct tr_asker *asker) {
        atomic_fetch_add(&((struct fake_asker *)asker)->refs, 1);
}

static void fake_asker_unref(struct tr_asker *asker, uint32_t count) {
        atomic_fetch_sub(&((struct fake_asker *)asker)->refs, count);
}

static const struct tr_asker_ops fake_asker_ops = {
        .resolve = fake_asker_resolve,
        .reject = fake_asker_reject,
        .ref = fake_asker_ref,
        .unref = fake_asker_unref,
};

void fake_asker_init(struct fake_asker *asker) {
        *asker = (struct fake_asker){ .asker.ops = &fake_asker_ops };
        pthread_mutex_init(&asker->lock, NULL);
        pthread_cond_init(&asker->changed, NULL);
        asker->outcomes = calloc(FAKE_OUTCOMES_MAX, sizeof(*asker->outcomes));
        ck_assert_ptr_nonnull(asker->outcomes);
}

void fake_asker_deinit(struct fake_asker *asker) {
        ck_assert_int_eq(atomic_load(&asker->refs), 0);
        pthread_cond_destroy(&asker->changed);
        pthread_mutex_destroy(&asker->lock);
        free(asker->outcomes);
}

void fake_asker_wait(struct fake_asker *asker, size_t count) {
        pthread_mutex_lock(&asker->lock);
        while (asker->count < count)
                pthread_cond_wait(&asker->changed, &asker->lock);
        pthread_mutex_unlock(&asker->lock);
}

struct tr_message *fake_message(struct fake_asker *asker, uint64_t id, const char *handler, int argument) {
        struct tr_writer writer = TR_WRITER_INIT;
        tr_write_int(&writer, argument);
        struct tr_message *message =
                tr_message_new(TR_MESSAGE_HANDLER, handler, strlen(handler), writer.data, writer.len, 1);
        tr_writer_deinit(&writer);
        ck_assert_ptr_nonnull(message);
        if (asker) {
                fake_asker_ref(&asker->asker);
                message->asker = &asker->asker;
                message->ask.id = id;
        }
        return message;
}

static void fake_on_wake(void *userdata) {
        sem_post(&((struct fake_system *)userdata)->woken);
}

static void fake_on_event(void *userdata, const struct tr_news *news) {
        struct fake_system *fake = userdata;
        atomic_fetch_add(&fake->events[news->event], 1);
        sem_post(&fake->woken);
}

static void fake_on_refused(void *userdata, const struct tr_refused *refused) {
        atomic_fetch_add(&((struct fake_system *)userdata)->refused, 1);
}

void fake_system_init(struct fake_system *fake, uint32_t actors_max) {
        *fake = (struct fake_system){ 0 };
        fake_shared_init(&fake->shared);
        sem_init(&fake->woken, 0, 0);
        const struct tr_system_limits limits = {
                .actors = actors_max,
                .actors_per_user = 2,
                .heap_bytes = 1 << 20,
                .heap_max_bytes = 1 << 30,
                .mailbox = 65536,
                .mailbox_bytes = 64 << 20,
                .async = 1024,
                .queue = 65536,
                .grace_ns = TR_NEVER,
        };
        const struct tr_system_hooks hooks = {
                .wake = fake_on_wake,
                .event = fake_on_event,
                .refused = fake_on_refused,
                .userdata = fake,
        };
        ck_assert_int_eq(tr_actor_install_signal(), 0);
        ck_assert_int_eq(tr_system_new(&limits, &fake_behaviour, &fake->shared, &hooks, &fake->system), 0);
}

static void fake_on_empty(void *userdata) {
        sem_post(&((struct fake_system *)userdata)->woken);
}

static bool fake_daemon_is_empty(void *userdata) {
        return tr_system_actors(((struct fake_system *)userdata)->system) == 0;
}

void fake_system_deinit(struct fake_system *fake) {
        tr_system_close(fake->system);
        tr_session_end(fake->system->daemon_session, TR_STOP_SHUTDOWN, TR_NEVER, fake_on_empty, fake);
        fake_system_run_until(fake, fake_daemon_is_empty, fake);
        ck_assert_uint_eq(tr_system_free(fake->system), 0);
        ck_assert_int_eq(atomic_load(&fake->shared.opened), atomic_load(&fake->shared.freed));
        sem_destroy(&fake->woken);
}

void fake_system_run_until(struct fake_system *fake, bool (*condition)(void *userdata), void *userdata) {
        for (;;) {
                uint64_t now = tr_clock_ns();
                uint64_t next = tr_system_run_due(fake->system, now);
                if (condition(userdata))
                        return;
                /* Conditions may become true without a wake (an outcome), so a look is due every few milliseconds. */
                uint64_t wait = next - now < 5 * TR_NS_PER_MS ? next - now : 5 * TR_NS_PER_MS;
                struct timespec until;
                clock_gettime(CLOCK_REALTIME, &until);
                until.tv_nsec += (long)wait;
                if (until.tv_nsec >= 1000000000L) {
                        until.tv_nsec -= 1000000000L;
                        until.tv_sec++;
                }
                while (sem_timedwait(&fake->woken, &until) < 0 && errno == EINTR)
                        ;
        }
}

struct outcomes_wanted {
        struct fake_asker *asker;
        size_t count;
};

static bool has_outcomes(void *userdata) {
        struct outcomes_wanted *wanted = userdata;
        pthread_mutex_lock(&wanted->asker->lock);
        bool enough = wanted->asker->count >= wanted->count;
        pthread_mutex_unlock(&wanted->asker->lock);
        return enough;
}

void fake_system_run_until_outcomes(struct fake_system *fake, struct fake_asker *asker, size_t count) {
        struct outcomes_wanted wanted = { asker, count };
        fake_system_run_until(fake, has_outcomes, &wanted);
}

struct tr_target *fake_spawn(struct fake_system *fake, const char *actor, const struct tr_actor_options *options) {
        struct tr_actor_options used = options ? *options : (struct tr_actor_options){ 0 };
        used.actor = actor;
        struct fake_asker asker;
        fake_asker_init(&asker);
        struct tr_message *init = fake_message(&asker, 1, "init", 0);
        init->kind = TR_MESSAGE_INIT;
        struct tr_target *target = NULL;
        struct tr_failure *failure =
                tr_actor_spawn(fake->system, fake->system->daemon_session, &used, init, &target, NULL);
        ck_assert_ptr_null(failure);
        fake_asker_wait(&asker, 1);
        ck_assert(asker.outcomes[0].resolved);
        while (atomic_load(&asker.refs) != 0) /* the actor drops its init right after it has answered */
                sched_yield();
        fake_asker_deinit(&asker);
        return target;
}
