/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor of configured actors, over a real loop and real actor threads, with a clock that the test drives. What
 * it does is seen where everybody sees it: in the log, and in the actors that are there.
 */
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log_line.h"
#include "daemon/core/actor.h"
#include "daemon/io/loop.h"
#include "daemon/supervisor.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/suite.h"

static _Atomic uint64_t now_ns = 1000 * TR_NS_PER_S;
static struct fake_shared shared;
static struct tr_loop *loop;
static struct tr_system *system_;
static struct tr_supervisor *supervisor;
static struct tr_settings_actor entries[8];
static struct tr_settings_actors actors = { .list = entries };
static int readies;

/* The last line of the log that speaks of a configured actor. */
static char line[512];
static int lines;
static bool has_line;

static uint64_t driven(void) {
        return atomic_load(&now_ns);
}

/* The supervisor logs on the loop thread, so this is the test's own thread. */
static void on_log(void *userdata, const struct tr_log_line *logged) {
        if (!strstr(logged->text, "configured actor: "))
                return;
        snprintf(line, sizeof(line), "%s: %s", logged->context.actor, logged->text);
        lines++;
        has_line = true;
        tr_loop_stop(loop);
}

static void on_ready(void *userdata) {
        readies++;
        tr_loop_stop(loop);
}

static void on_wake(void *userdata) {
        tr_loop_wake(loop);
}

static void stop_loop(struct tr_work *work) {
        tr_loop_stop(loop);
}

static void set_up(void) {
        const struct tr_system_limits limits = {
                .actors = 3,
                .actors_per_user = 2,
                .heap_bytes = 1 << 20,
                .heap_max_bytes = 1 << 30,
                .mailbox = 100,
                .mailbox_bytes = 1 << 20,
                .async = 10,
                .grace_ns = TR_NEVER,
        };
        const struct tr_system_hooks hooks = { .wake = on_wake };

        tr_clock_set_source(driven);
        tr_log_set_hook(on_log, NULL);
        fake_shared_init(&shared);
        ck_assert_int_eq(tr_actor_install_signal(), 0);
        ck_assert_int_eq(tr_loop_new(&loop), 0);
        ck_assert_int_eq(tr_system_new(&limits, &fake_behaviour, &shared, &hooks, &system_), 0);
        tr_loop_attach(loop, system_);
}

static void configure(const char *actor, const char *publish, enum tr_restart restart) {
        entries[actors.count++] = (struct tr_settings_actor){
                .actor = (char *)actor,
                .publish = (char *)publish,
                .restart = restart,
        };
}

static void start(void) {
        const struct tr_supervisor_options options = {
                .loop = loop,
                .system = system_,
                .actors = &actors,
                .ready = on_ready,
        };

        ck_assert_int_eq(tr_supervisor_new(&options, &supervisor), 0);
        tr_supervisor_start(supervisor);
}

/* Runs the loop until the supervisor says something. */
static void run_until_line(void) {
        while (!has_line)
                ck_assert_int_eq(tr_loop_run(loop), 0);
        has_line = false;
}

static void run_until_ready(void) {
        while (readies == 0)
                ck_assert_int_eq(tr_loop_run(loop), 0);
}

/* One round: what is posted and what is due by now. */
static void run_once(void) {
        struct tr_work work;

        tr_work_init(&work, stop_loop);
        tr_loop_post(loop, &work);
        ck_assert_int_eq(tr_loop_run(loop), 0);
}

/* The pause that the last line tells, in milliseconds. */
static unsigned int pause_ms(void) {
        const char *at = strstr(line, "it is started again in ");
        unsigned int ms;

        ck_assert_msg(at, "%s", line);
        ck_assert_int_eq(sscanf(at, "it is started again in %u ms", &ms), 1);
        return ms;
}

static void assert_pause(unsigned int expected_ms) {
        ck_assert_uint_ge(pause_ms(), expected_ms * 8 / 10 - 1);
        ck_assert_uint_le(pause_ms(), expected_ms * 12 / 10);
}

/* Lets the pause pass, to the nanosecond before its end and beyond it. The actor's next end is not waited for. */
static void pass_pause(void) {
        atomic_fetch_add(&now_ns, pause_ms() * TR_NS_PER_MS - 1);
        run_once();
        ck_assert(!has_line);
        atomic_fetch_add(&now_ns, TR_NS_PER_MS + 1);
        tr_loop_wake(loop);
}

static struct tr_target *find(const char *name) {
        return tr_registry_find_name(&system_->registry, name, strlen(name));
}

static void on_empty(void *userdata) {
        tr_loop_post(loop, userdata);
}

static void tear_down(void) {
        struct tr_work work;

        tr_supervisor_stop(supervisor);
        tr_work_init(&work, stop_loop);
        tr_system_close(system_);
        tr_session_end(system_->daemon_session, TR_STOP_SHUTDOWN, TR_NEVER, on_empty, &work);
        ck_assert_int_eq(tr_loop_run(loop), 0);
        tr_supervisor_free(supervisor);
        ck_assert_uint_eq(tr_system_free(system_), 0);
        tr_loop_free(loop);
        ck_assert_int_eq(atomic_load(&shared.opened), atomic_load(&shared.freed));
        tr_log_set_hook(NULL, NULL);
}

START_TEST(with_none_it_is_ready_at_once) {
        set_up();
        start();
        ck_assert_int_eq(readies, 1);
        tear_down();
}
END_TEST

START_TEST(it_is_ready_when_every_init_has_ended) {
        struct tr_target *slow;

        set_up();
        configure("quick", "quick", TR_RESTART_ON_FAULT);
        configure("slow-init", "slow", TR_RESTART_ON_FAULT);
        start();
        slow = find("slow");
        ck_assert_ptr_nonnull(slow);
        run_once();
        ck_assert_int_eq(readies, 0);
        tr_mailbox_post_answer(&tr_actor_of(slow)->mailbox, tr_answer_new(1, "\xc0", 1));
        run_until_ready();
        ck_assert_int_eq(readies, 1);
        ck_assert_int_eq(lines, 0);
        tr_target_unref(slow);
        tear_down();
}
END_TEST

START_TEST(a_failure_does_not_hold_readiness_up) {
        set_up();
        configure("bad-init", NULL, TR_RESTART_ON_FAULT);
        configure("broken", NULL, TR_RESTART_NEVER);
        start();
        run_until_ready();
        ck_assert_int_eq(readies, 1);
        ck_assert_int_eq(lines, 2);
        tear_down();
}
END_TEST

START_TEST(pauses_double_and_nothing_starts_before_its_time) {
        static const unsigned int expected_ms[] = { 200, 400, 800, 1600, 3200, 6400, 10000, 10000, 10000 };

        set_up();
        configure("bad-init", NULL, TR_RESTART_ON_FAULT);
        start();
        for (size_t i = 0; i < sizeof(expected_ms) / sizeof(*expected_ms); i++) {
                run_until_line();
                ck_assert_ptr_nonnull(strstr(line, "bad-init: configured actor: fault: bad init; "));
                assert_pause(expected_ms[i]);
                ck_assert_int_eq(atomic_load(&shared.opened), (int)i + 1);
                pass_pause();
        }
        run_until_line();
        ck_assert_ptr_nonnull(strstr(line, "it failed 10 times within a minute and is tried once a minute"));
        ck_assert_int_eq(readies, 1);
        tear_down();
}
END_TEST

START_TEST(a_published_name_moves_along) {
        struct tr_target *first, *second, *third;

        set_up();
        configure("counter", "counter", TR_RESTART_ON_FAULT);
        configure("other", "other", TR_RESTART_NEVER);
        start();
        run_until_ready();
        first = find("counter");
        ck_assert_int_eq(tr_target_send(first, fake_message(NULL, 0, "fault", 0)), TR_POST_OK);
        run_until_line();
        ck_assert_str_eq(line + strlen(line) - 3, " ms");
        /* meanwhile it leads to the one that has ended, and nobody else gets it */
        second = find("counter");
        ck_assert_ptr_eq(second, first);
        tr_target_unref(second);
        second = find("other");
        ck_assert_int_eq(tr_registry_publish(&system_->registry, "counter", 7, second, NULL, NULL), TR_REGISTRY_TAKEN);
        pass_pause();
        run_once();
        third = find("counter");
        ck_assert_ptr_ne(third, first);
        ck_assert(!tr_target_has_ended(third));
        tr_target_unref(first);
        tr_target_unref(second);
        tr_target_unref(third);
        tear_down();
}
END_TEST

START_TEST(a_long_run_is_forgiven) {
        struct tr_target *target;

        set_up();
        configure("counter", "counter", TR_RESTART_ON_FAULT);
        start();
        for (int round = 0; round < 3; round++) {
                while (tr_target_has_ended(target = find("counter"))) {
                        tr_target_unref(target);
                        run_once();
                }
                if (round == 2)
                        atomic_fetch_add(&now_ns, 10 * TR_NS_PER_S);
                ck_assert_int_eq(tr_target_send(target, fake_message(NULL, 0, "fault", 0)), TR_POST_OK);
                tr_target_unref(target);
                run_until_line();
                assert_pause(round == 1 ? 400 : 200);
                pass_pause();
        }
        tear_down();
}
END_TEST

/* How an actor of a policy ends, and whether it comes back. */
static const struct {
        enum tr_restart restart;
        bool kill;
        bool fault;
        bool back;
} ends[] = {
        { TR_RESTART_NEVER, false, false, false },  { TR_RESTART_NEVER, false, true, false },
        { TR_RESTART_NEVER, true, false, false },   { TR_RESTART_ON_FAULT, false, false, false },
        { TR_RESTART_ON_FAULT, false, true, true }, { TR_RESTART_ON_FAULT, true, false, true },
        { TR_RESTART_ALWAYS, false, false, true },  { TR_RESTART_ALWAYS, false, true, true },
        { TR_RESTART_ALWAYS, true, false, true },
};

static void end(struct tr_target *target, size_t i) {
        if (ends[i].fault)
                ck_assert_int_eq(tr_target_send(target, fake_message(NULL, 0, "fault", 0)), TR_POST_OK);
        else if (ends[i].kill)
                target->ops->kill(target);
        else
                target->ops->stop(target, TR_STOP_ASKED, TR_NEVER);
}

START_TEST(restart_says_who_comes_back) {
        for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
                struct tr_target *target;

                readies = lines = 0;
                has_line = false;
                actors.count = 0;
                set_up();
                configure("counter", "counter", ends[i].restart);
                start();
                run_until_ready();
                target = find("counter");
                end(target, i);
                tr_target_unref(target);
                run_until_line();
                if (ends[i].back) {
                        assert_pause(200);
                } else {
                        ck_assert_ptr_nonnull(strstr(line, "; it is not started again"));
                        ck_assert(!tr_registry_is_held(&system_->registry, "counter", 7));
                        atomic_fetch_add(&now_ns, 3600 * TR_NS_PER_S);
                        run_once();
                        ck_assert_int_eq(atomic_load(&shared.opened), 1);
                }
                tear_down();
        }
}
END_TEST

START_TEST(what_cannot_be_started_is_tried_again) {
        set_up();
        configure("one", NULL, TR_RESTART_ON_FAULT);
        configure("two", "name", TR_RESTART_ON_FAULT);
        configure("three", "name", TR_RESTART_ON_FAULT);
        configure("four", NULL, TR_RESTART_NEVER);
        system_->own_uid = 0;
        start();
        ck_assert_int_eq(lines, 1);
        ck_assert_ptr_nonnull(strstr(line, "three: configured actor: taken: "));
        assert_pause(200);
        run_until_ready();
        ck_assert_uint_eq(tr_system_actors(system_), 3);
        /* no room for a fourth now */
        has_line = false;
        pass_pause();
        run_until_line();
        ck_assert_ptr_nonnull(strstr(line, "three: configured actor: limit: "));
        assert_pause(400);
        tear_down();
}
END_TEST

START_TEST(nothing_comes_back_after_the_stop) {
        struct tr_target *target;

        set_up();
        configure("bad-init", NULL, TR_RESTART_ALWAYS);
        configure("counter", "counter", TR_RESTART_ALWAYS);
        start();
        run_until_ready();
        run_until_line();
        tr_supervisor_stop(supervisor);
        target = find("counter");
        target->ops->kill(target);
        tr_target_unref(target);
        while (tr_system_actors(system_) > 0)
                run_once();
        atomic_fetch_add(&now_ns, 3600 * TR_NS_PER_S);
        run_once();
        ck_assert_int_eq(lines, 1);
        ck_assert_int_eq(atomic_load(&shared.opened), 2);
        tear_down();
}
END_TEST

static void reload(void) {
        ck_assert_int_eq(tr_supervisor_reload(supervisor, &actors), 0);
}

static bool is_held(const char *name) {
        return tr_registry_is_held(&system_->registry, name, strlen(name));
}

START_TEST(a_reload_applies_the_difference) {
        struct tr_target *kept, *changed, *again;

        set_up();
        configure("counter", "kept", TR_RESTART_ON_FAULT);
        configure("other", "changed", TR_RESTART_ON_FAULT);
        start();
        run_until_ready();
        kept = find("kept");
        changed = find("changed");
        reload();
        run_once();
        again = find("changed");
        ck_assert_ptr_eq(again, changed);
        tr_target_unref(again);

        entries[1].mailbox = 7;
        configure("third", "added", TR_RESTART_ON_FAULT);
        reload();
        ck_assert(is_held("added"));
        run_until_line();
        ck_assert_str_eq(line, "other: configured actor: it stopped; it is started by its new settings");
        again = find("changed");
        ck_assert_ptr_ne(again, changed);
        ck_assert_uint_eq(((struct tr_actor *)again)->mailbox.messages_max, 7);
        tr_target_unref(again);
        again = find("kept");
        ck_assert_ptr_eq(again, kept);
        tr_target_unref(again);

        actors.count = 1;
        reload();
        run_until_line();
        while (lines < 3)
                run_once();
        ck_assert(is_held("kept") && !is_held("changed") && !is_held("added"));
        ck_assert_int_eq(readies, 1);
        tr_target_unref(kept);
        tr_target_unref(changed);
        tear_down();
}
END_TEST

START_TEST(a_reload_does_not_wait_for_a_pause) {
        set_up();
        configure("bad-init", "name", TR_RESTART_ON_FAULT);
        configure("bad-init", "gone", TR_RESTART_ON_FAULT);
        start();
        while (lines < 2)
                run_once();
        entries[0].actor = (char *)"counter";
        entries[0].publish = (char *)"name";
        actors.count = 1;
        has_line = false;
        reload();
        run_until_line();
        ck_assert_str_eq(line, "bad-init: configured actor: it stopped; it is not configured any more");
        ck_assert(is_held("name") && !is_held("gone"));
        while (atomic_load(&shared.opened) < 3)
                run_once();
        /* nothing is left that would start */
        atomic_fetch_add(&now_ns, 3600 * TR_NS_PER_S);
        run_once();
        ck_assert_int_eq(atomic_load(&shared.opened), 3);
        tear_down();
}
END_TEST

START_TEST(what_comes_back_before_it_has_ended_is_started_again) {
        struct tr_target *first, *second;

        set_up();
        configure("counter", "name", TR_RESTART_NEVER);
        start();
        run_until_ready();
        first = find("name");
        actors.count = 0;
        reload();
        actors.count = 1;
        reload();
        run_until_line();
        ck_assert_str_eq(line, "counter: configured actor: it stopped; it is started by its new settings");
        second = find("name");
        ck_assert_ptr_ne(second, first);
        tr_target_unref(first);
        tr_target_unref(second);

        /* another name, and the one before it is free */
        entries[0].publish = (char *)"other";
        entries[0].name = (char *)"label";
        reload();
        run_until_line();
        while (!is_held("other"))
                run_once();
        ck_assert(!is_held("name"));
        tear_down();
}
END_TEST

suite_main("supervisor", with_none_it_is_ready_at_once, it_is_ready_when_every_init_has_ended,
           a_failure_does_not_hold_readiness_up, pauses_double_and_nothing_starts_before_its_time,
           a_published_name_moves_along, a_long_run_is_forgiven, restart_says_who_comes_back,
           what_cannot_be_started_is_tried_again, nothing_comes_back_after_the_stop, a_reload_applies_the_difference,
           a_reload_does_not_wait_for_a_pause, what_comes_back_before_it_has_ended_is_started_again);
