/* SPDX-License-Identifier: Apache-2.0 */
/* Published names: whose they are, and that one which is kept leads from each actor to the next with nobody in between. */
#include <errno.h>
#include <string.h>

#include "daemon/core/stock.h"
#include "tests/unit/failing.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/suite.h"

static struct fake_system fake;
static struct fake_asker asker;
static struct tr_registry *registry;
static struct tr_keeper keeper, other;

static void set_up(void) {
        fake_system_init(&fake, 64);
        fake_asker_init(&asker);
        registry = &fake.system->registry;
}

static void tear_down(void) {
        fake_system_deinit(&fake);
        fake_asker_deinit(&asker);
}

static struct tr_target *spawn(void) {
        return fake_spawn(&fake, "worker", NULL);
}

/* Ends an actor and waits until everybody knows. The reference stays the caller's. */
static void end(struct tr_target *target) {
        struct tr_message *message = fake_message(&asker, 1, "", 0);
        size_t before = asker.count; /* nobody else adds to it now */

        message->kind = TR_MESSAGE_DONE;
        tr_target_watch(target, message);
        target->ops->kill(target);
        fake_system_run_until_outcomes(&fake, &asker, before + 1);
}

static int publish(const char *name, struct tr_target *target, struct tr_keeper *whose) {
        return tr_registry_publish(registry, name, strlen(name), target, whose, NULL);
}

static int keep(const char *name, struct tr_keeper *whose) {
        return tr_registry_keep(registry, name, strlen(name), whose);
}

/* Whom a name leads to, not a reference: the tests hold what they published. */
static struct tr_target *find(const char *name) {
        struct tr_target *target = tr_registry_find_name(registry, name, strlen(name));

        tr_target_unref(target);
        return target;
}

static bool is_held(const char *name) {
        return tr_registry_is_held(registry, name, strlen(name));
}

START_TEST(a_name_of_its_own_goes_with_the_target) {
        struct tr_target *first, *second;

        set_up();
        first = spawn();
        second = spawn();
        ck_assert_int_eq(publish("door", first, NULL), 0);
        ck_assert_int_eq(publish("door", second, NULL), TR_REGISTRY_TAKEN);
        ck_assert_int_eq(publish("door", second, &keeper), TR_REGISTRY_TAKEN);
        ck_assert_int_eq(keep("door", &keeper), TR_REGISTRY_TAKEN);
        end(first);
        ck_assert(!is_held("door"));
        ck_assert_int_eq(publish("door", second, NULL), 0);
        ck_assert_ptr_eq(find("door"), second);
        tr_target_unref(first);
        tr_target_unref(second);
        tear_down();
}
END_TEST

static int move(const char *name, struct tr_target *from, struct tr_target *to) {
        return tr_registry_move(registry, name, strlen(name), from, to);
}

START_TEST(a_name_is_moved_from_who_has_it) {
        struct tr_target *first, *second;

        set_up();
        first = spawn();
        second = spawn();
        ck_assert_int_eq(publish("gate", first, NULL), 0);
        ck_assert_int_eq(publish("door", first, NULL), 0);
        ck_assert_int_eq(publish("wall", second, NULL), 0);
        ck_assert_int_eq(move("door", first, second), 0);
        ck_assert_ptr_eq(find("door"), second);
        ck_assert_ptr_eq(find("gate"), first);
        /* what is not the one's is not taken, and what is nobody's is published */
        ck_assert_int_eq(move("wall", first, first), TR_REGISTRY_TAKEN);
        ck_assert_int_eq(move("roof", first, second), 0);
        ck_assert_ptr_eq(find("roof"), second);
        ck_assert_int_eq(keep("kept", &keeper), 0);
        ck_assert_int_eq(publish("kept", first, &keeper), 0);
        ck_assert_int_eq(move("kept", first, second), TR_REGISTRY_TAKEN);
        /* each goes with whom it leads to now */
        end(first);
        ck_assert(!is_held("gate") && is_held("door") && is_held("wall"));
        end(second);
        ck_assert(!is_held("door") && !is_held("wall") && !is_held("roof"));
        ck_assert_int_eq(move("door", first, second), TR_REGISTRY_ENDED);
        tr_registry_release(registry, &keeper);
        tr_target_unref(first);
        tr_target_unref(second);
        tear_down();
}
END_TEST

START_TEST(a_kept_name_moves_in_one_step) {
        struct tr_target *first, *second, *stranger, *holder = NULL;

        set_up();
        first = spawn();
        second = spawn();
        stranger = spawn();
        ck_assert_int_eq(publish("door", first, &keeper), 0);
        ck_assert_int_eq(publish("door", second, &keeper), TR_REGISTRY_TAKEN); /* the first one still runs */
        end(first);
        ck_assert_ptr_eq(find("door"), first);
        ck_assert_int_eq(publish("door", stranger, NULL), TR_REGISTRY_TAKEN);
        ck_assert_int_eq(publish("door", stranger, &other), TR_REGISTRY_TAKEN);
        ck_assert_int_eq(keep("door", &other), TR_REGISTRY_TAKEN);
        ck_assert_int_eq(tr_registry_publish(registry, "door", 4, stranger, NULL, &holder), TR_REGISTRY_TAKEN);
        ck_assert_ptr_eq(holder, first);
        tr_target_unref(holder);
        ck_assert_int_eq(publish("door", second, &keeper), 0);
        ck_assert_ptr_eq(find("door"), second);
        tr_registry_release(registry, &keeper);
        ck_assert(!is_held("door"));
        ck_assert_int_eq(publish("door", stranger, NULL), 0);
        tr_target_unref(first);
        tr_target_unref(second);
        tr_target_unref(stranger);
        tear_down();
}
END_TEST

/* One more actor that ended: the system forgets the oldest of those. */
static void push_out(void) {
        const struct tr_actor_options options = { .actor = "broken" };
        struct tr_target *target = NULL;
        struct tr_message *message;
        size_t before = asker.count;

        ck_assert_ptr_null(tr_actor_spawn(fake.system, fake.system->daemon_session, &options,
                                          tr_message_new(TR_MESSAGE_INIT, "init", 4, NULL, 0, 0), &target, NULL));
        message = fake_message(&asker, 2, "", 0);
        message->kind = TR_MESSAGE_DONE;
        tr_target_watch(target, message);
        tr_target_unref(target);
        fake_system_run_until_outcomes(&fake, &asker, before + 1);
}

START_TEST(a_kept_name_outlives_what_it_led_to) {
        struct tr_target *target;

        set_up();
        target = spawn();
        ck_assert_int_eq(publish("door", target, &keeper), 0);
        end(target);
        tr_target_unref(target);
        for (int i = 0; i < TR_SYSTEM_ENDED_KEPT; i++)
                push_out();
        target = tr_registry_find_name(registry, "door", 4);
        ck_assert_ptr_nonnull(target);
        ck_assert_int_eq(tr_target_send(target, fake_message(NULL, 0, "nothing", 0)), TR_POST_CLOSED);
        tr_target_unref(target);
        tr_registry_release(registry, &keeper);
        tear_down();
}
END_TEST

START_TEST(a_name_can_be_kept_before_it_leads_anywhere) {
        struct tr_target *target;

        set_up();
        target = spawn();
        ck_assert_int_eq(keep("door", &keeper), 0);
        ck_assert_int_eq(keep("door", &keeper), 0);
        ck_assert_int_eq(keep("gate", &keeper), 0);
        ck_assert(is_held("door"));
        ck_assert_ptr_null(find("door"));
        ck_assert_int_eq(publish("door", target, NULL), TR_REGISTRY_TAKEN);
        ck_assert_int_eq(publish("door", target, &keeper), 0);
        ck_assert_ptr_eq(find("door"), target);
        tr_registry_release_name(registry, "door", 4, &other);
        ck_assert(is_held("door"));
        tr_registry_release_name(registry, "door", 4, &keeper);
        ck_assert(!is_held("door"));
        ck_assert(is_held("gate"));
        tr_registry_release(registry, &keeper);
        ck_assert(!is_held("gate"));
        tr_target_unref(target);
        tear_down();
}
END_TEST

START_TEST(who_ends_keeps_nothing) {
        static const char *const names[] = { "door", "gate", NULL };
        const struct tr_actor_options options = { .actor = "worker", .keep = names };
        struct tr_target *owner, *target;

        set_up();
        owner = fake_spawn(&fake, "worker", &options);
        target = spawn();
        ck_assert(is_held("gate"));
        ck_assert_int_eq(publish("door", target, &owner->keeper), 0);
        end(owner);
        ck_assert(!is_held("door"));
        ck_assert(!is_held("gate"));
        ck_assert(!tr_target_has_ended(target));
        tr_target_unref(owner);
        tr_target_unref(target);
        tear_down();
}
END_TEST

START_TEST(a_start_without_one_of_its_names_keeps_none) {
        static const char *const names[] = { "door", "gate", NULL };
        struct tr_actor_options options = { .actor = "worker", .keep = names };
        struct tr_target *holder, *target = NULL;
        struct tr_failure *failure;

        set_up();
        holder = spawn();
        ck_assert_int_eq(publish("gate", holder, NULL), 0);
        failure = tr_actor_spawn(fake.system, fake.system->daemon_session, &options,
                                 tr_message_new(TR_MESSAGE_INIT, "init", 4, NULL, 0, 0), &target, NULL);
        ck_assert_ptr_nonnull(failure);
        ck_assert_int_eq(failure->code, TR_CODE_TAKEN);
        ck_assert_str_eq(failure->message, "the name gate is published already");
        ck_assert(!is_held("door"));
        tr_failure_unref(failure);
        tr_target_unref(holder);
        tear_down();
}
END_TEST

START_TEST(anybody_who_may_unpublish_frees_a_kept_name) {
        struct tr_target *target;

        set_up();
        target = spawn();
        ck_assert_int_eq(publish("door", target, &keeper), 0);
        ck_assert_int_eq(tr_registry_unpublish(registry, "door", 4), 0);
        ck_assert(!is_held("door"));
        ck_assert_ptr_null(keeper.kept);
        ck_assert_int_eq(publish("door", target, &keeper), 0);
        tr_registry_release(registry, &keeper);
        tr_target_unref(target);
        tear_down();
}
END_TEST

START_TEST(names_without_memory) {
        tr_stock_disable();
        struct tr_target *target;
        long n = 0;
        int r;

        set_up();
        target = spawn();
        do {
                failing_arm(++n);
                r = keep("door", &keeper);
                if (r == 0)
                        r = publish("door", target, &keeper);
                if (r == 0)
                        r = publish("gate", target, NULL);
                failing_arm(0);
                ck_assert_int_eq(r, failing_hit() ? -ENOMEM : 0);
                ck_assert(r == 0 || !is_held("gate"));
                tr_registry_release(registry, &keeper);
                ck_assert(!is_held("door"));
        } while (failing_hit());
        ck_assert_int_gt(n, 3);
        tr_target_unref(target);
        tear_down();
}
END_TEST

suite_main("registry", a_name_of_its_own_goes_with_the_target, a_name_is_moved_from_who_has_it, a_kept_name_moves_in_one_step,
           a_kept_name_outlives_what_it_led_to, a_name_can_be_kept_before_it_leads_anywhere, who_ends_keeps_nothing,
           a_start_without_one_of_its_names_keeps_none, anybody_who_may_unpublish_frees_a_kept_name,
           names_without_memory);
