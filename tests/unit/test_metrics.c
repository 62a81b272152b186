/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics: how they are written, and what those of pools are. */
#define SUITE_TIMEOUT_S 120
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/component.h"
#include "daemon/core/pool.h"
#include "daemon/watch/exposition.h"
#include "daemon/watch/metrics.h"
#include "tests/unit/failing.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/suite.h"

static struct fake_system fake;
static struct fake_asker asker;
static struct tr_exposition to;

static void setup(void) {
        fake_system_init(&fake, 64);
        fake_asker_init(&asker);
        to = (struct tr_exposition){ 0 };
}

static void teardown(void) {
        tr_writer_deinit(&to.text);
        fake_system_deinit(&fake);
        fake_asker_deinit(&asker);
}

/* What was written so far, and nothing of it is left. */
static const char *written(void) {
        static char text[65536];
        ck_assert_int_eq(tr_writer_error(&to.text), 0);
        ck_assert_uint_lt(to.text.len, sizeof(text));
        if (to.text.len)
                memcpy(text, to.text.data, to.text.len);
        text[to.text.len] = '\0';
        tr_writer_reset(&to.text);
        return text;
}

START_TEST(what_would_end_a_value_is_escaped) {
        static const struct tr_family family = { "troupe_x", TR_FAMILY_GAUGE, NULL, "One \\ two\nthree." };
        const struct tr_label labels[] = { { "a", "q\"u\\o\nte" }, { "b", "plain" } };
        tr_exposition_family(&to, &family);
        tr_exposition_number(&to, labels, 2, 7);
        tr_exposition_number(&to, NULL, 0, UINT64_MAX);
        tr_exposition_end(&to);
        ck_assert_str_eq(written(), "# TYPE troupe_x gauge\n"
                                    "# HELP troupe_x One \\\\ two\\nthree.\n"
                                    "troupe_x{a=\"q\\\"u\\\\o\\nte\",b=\"plain\"} 7\n"
                                    "troupe_x 18446744073709551615\n"
                                    "# EOF\n");
}
END_TEST

START_TEST(counters_and_infos_have_their_suffixes) {
        static const struct tr_family counter = { "troupe_x", TR_FAMILY_COUNTER, NULL, "X." };
        static const struct tr_family info = { "troupe_y", TR_FAMILY_INFO, NULL, "Y." };
        tr_exposition_family(&to, &counter);
        tr_exposition_number(&to, NULL, 0, 1);
        tr_exposition_family(&to, &info);
        tr_exposition_number(&to, &(struct tr_label){ "version", "1" }, 1, 1);
        ck_assert_str_eq(written(), "# TYPE troupe_x counter\n# HELP troupe_x X.\ntroupe_x_total 1\n"
                                    "# TYPE troupe_y info\n# HELP troupe_y Y.\ntroupe_y_info{version=\"1\"} 1\n");
}
END_TEST

START_TEST(times_are_histograms_in_seconds) {
        static const struct tr_family family = { "troupe_x_seconds", TR_FAMILY_HISTOGRAM, "seconds", "X." };
        struct tr_times times = { 0 };
        struct tr_times_sum sum = { 0 };
        tr_times_add(&times, 10 * TR_NS_PER_US); /* not above the first bound */
        tr_times_add(&times, 10 * TR_NS_PER_US + 1);
        tr_times_add(&times, TR_NS_PER_S);
        tr_times_add(&times, 60 * TR_NS_PER_S);
        tr_times_sum_up(&sum, &times);
        tr_exposition_family(&to, &family);
        tr_exposition_times(&to, &(struct tr_label){ "pool", "p" }, 1, &sum);
        const char *text = written();
        static const char *const lines[] = {
                "# TYPE troupe_x_seconds histogram\n# UNIT troupe_x_seconds seconds\n# HELP troupe_x_seconds X.\n",
                "troupe_x_seconds_bucket{pool=\"p\",le=\"1e-05\"} 1\n",
                "troupe_x_seconds_bucket{pool=\"p\",le=\"2.5e-05\"} 2\n",
                "troupe_x_seconds_bucket{pool=\"p\",le=\"0.5\"} 2\n",
                "troupe_x_seconds_bucket{pool=\"p\",le=\"1.0\"} 3\n",
                "troupe_x_seconds_bucket{pool=\"p\",le=\"10.0\"} 3\n"
                "troupe_x_seconds_bucket{pool=\"p\",le=\"+Inf\"} 4\n"
                "troupe_x_seconds_count{pool=\"p\"} 4\n"
                "troupe_x_seconds_sum{pool=\"p\"} 61.000020001\n",
        };
        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
                ck_assert_msg(strstr(text, lines[i]), "%s is not in:\n%s", lines[i], text);
}
END_TEST

START_TEST(every_bound_counts_what_is_not_above_it) {
        struct tr_times times = { 0 };
        struct tr_times_sum sum = { 0 };
        for (unsigned int i = 0; i < TR_TIMES_BOUNDS; i++)
                tr_times_add(&times, tr_times_bounds_ns[i]);
        tr_times_add(&times, UINT64_MAX >> 8);
        tr_times_sum_up(&sum, &times);
        for (unsigned int i = 0; i <= TR_TIMES_BOUNDS; i++)
                ck_assert_uint_eq(sum.counts[i], 1);
}
END_TEST

/* Pools */

static uint64_t expected_running;

static bool all_run(void *userdata) {
        struct tr_pool_figures figures = { 0 };
        struct tr_target *const *pools = userdata;
        for (size_t i = 0; pools[i]; i++)
                tr_pool_add_figures(tr_pool_of(pools[i]), &figures, NULL);
        return figures.running == expected_running;
}

static struct tr_target *start(const char *name, const char *publish, uint32_t workers) {
        const struct tr_pool_options options = {
                .name = name,
                .publish = publish,
                .actor = "thumb",
                .workers = workers,
                .backoff_min_ns = TR_NS_PER_MS,
                .backoff_max_ns = TR_NS_PER_MS,
        };
        struct tr_message *message = fake_message(NULL, 0, "init", 0);
        struct tr_target *target;
        message->kind = TR_MESSAGE_INIT;
        ck_assert_ptr_null(tr_pool_start(fake.system, fake.system->daemon_session, &options, message, &target, NULL));
        return target;
}

static void check_has(const char *text, const char *line) {
        ck_assert_msg(strstr(text, line), "%s is not in:\n%s", line, text);
}

static const char *pools_text(void) {
        tr_metrics_pools(&(struct tr_watched){ .system = fake.system }, &to);
        return written();
}

static void run_pools(struct tr_target *const *pools, uint64_t running) {
        expected_running = running;
        fake_system_run_until(&fake, all_run, (void *)pools);
}

START_TEST(without_a_pool_there_are_families_only) {
        const char *text = pools_text();
        check_has(text, "# TYPE troupe_pool_wait_seconds histogram\n# UNIT troupe_pool_wait_seconds seconds\n");
        ck_assert_ptr_null(strstr(text, "\ntroupe_"));
}
END_TEST

START_TEST(pools_of_one_name_are_added_up) {
        struct tr_target *pools[] = { start("thumbs", "a", 2), start("thumbs", "b", 3), start("others", NULL, 1), NULL };
        run_pools(pools, 6);
        const char *text = pools_text();
        check_has(text, "\ntroupe_pool_size{pool=\"others\"} 1\ntroupe_pool_size{pool=\"thumbs\"} 5\n# ");
        check_has(text, "\ntroupe_pool_running{pool=\"others\"} 1\ntroupe_pool_running{pool=\"thumbs\"} 5\n# ");
        check_has(text, "\ntroupe_pool_mailbox_depth{pool=\"thumbs\",worker=\"w-1\"} 0\n"
                        "troupe_pool_mailbox_depth{pool=\"thumbs\",worker=\"w-2\"} 0\n"
                        "troupe_pool_mailbox_depth{pool=\"thumbs\",worker=\"w-3\"} 0\n");
        for (size_t i = 0; pools[i]; i++)
                tr_target_unref(pools[i]);
}
END_TEST

static void ask(struct tr_target *target, const char *handler, uint64_t id) {
        ck_assert_int_eq(tr_target_send(target, fake_message(&asker, id, handler, 1)), TR_POST_OK);
}

/* Whoever has his answer finds it counted: nothing here waits for more than that. */
START_TEST(what_was_answered_is_counted) {
        struct tr_target *pools[] = { start("thumbs", NULL, 2), NULL };
        run_pools(pools, 2);
        for (uint64_t i = 0; i < 100; i++) {
                ask(pools[0], i == 50 ? "fault" : i % 10 == 0 ? "no-such" : "nothing", i);
                fake_system_run_until_outcomes(&fake, &asker, (size_t)i + 1);
                struct tr_pool_figures figures = { 0 };
                uint64_t waited = 0, ran = 0;
                tr_pool_add_figures(tr_pool_of(pools[0]), &figures, NULL);
                for (unsigned int at = 0; at <= TR_TIMES_BOUNDS; at++) {
                        waited += figures.wait.counts[at];
                        ran += figures.run.counts[at];
                }
                ck_assert_uint_eq(figures.messages, i + 1);
                ck_assert_uint_eq(waited, i + 1);
                ck_assert_uint_eq(ran, i + 1);
        }
        run_pools(pools, 2);
        const char *text = pools_text();
        check_has(text, "\ntroupe_pool_messages_total{pool=\"thumbs\"} 100\n");
        check_has(text, "\ntroupe_pool_faults_total{pool=\"thumbs\"} 1\n");
        check_has(text, "\ntroupe_pool_restarts_total{pool=\"thumbs\"} 1\n");
        check_has(text, "\ntroupe_pool_wait_seconds_count{pool=\"thumbs\"} 100\n");
        check_has(text, "\ntroupe_pool_run_seconds_count{pool=\"thumbs\"} 100\n");
        tr_target_unref(pools[0]);
}
END_TEST

START_TEST(what_waits_in_a_mailbox_is_its_depth) {
        struct tr_target *pools[] = { start("thumbs", NULL, 1), NULL };
        run_pools(pools, 1);
        ask(pools[0], "block", 0);
        sem_wait(&fake.shared.entered);
        for (uint64_t i = 1; i <= 7; i++)
                ask(pools[0], "nothing", i);
        check_has(pools_text(), "\ntroupe_pool_mailbox_depth{pool=\"thumbs\",worker=\"w-1\"} 7\n");
        sem_post(&fake.shared.go);
        fake_system_run_until_outcomes(&fake, &asker, 8);
        check_has(pools_text(), "\ntroupe_pool_mailbox_depth{pool=\"thumbs\",worker=\"w-1\"} 0\n");
        tr_target_unref(pools[0]);
}
END_TEST

/* A message to a worker's own handle is none of the pool's. */
START_TEST(what_the_pool_did_not_route_is_not_counted) {
        struct tr_target *pools[] = { start("thumbs", NULL, 1), NULL };
        run_pools(pools, 1);
        struct tr_pool *pool = tr_pool_of(pools[0]);
        tr_lock_acquire(&pool->lock);
        struct tr_target *worker = tr_target_ref(&pool->slots[0].worker->target);
        tr_lock_release(&pool->lock);
        ask(worker, "nothing", 0);
        fake_system_run_until_outcomes(&fake, &asker, 1);
        const char *text = pools_text();
        check_has(text, "\ntroupe_pool_messages_total{pool=\"thumbs\"} 0\n");
        check_has(text, "\ntroupe_pool_run_seconds_count{pool=\"thumbs\"} 0\n");
        tr_target_unref(worker);
        tr_target_unref(pools[0]);
}
END_TEST

START_TEST(messages_stay_counted_when_an_actor_ends) {
        struct tr_target *target = fake_spawn(&fake, "worker", NULL);
        for (uint64_t i = 0; i < 10; i++)
                ask(target, "nothing", i);
        fake_system_run_until_outcomes(&fake, &asker, 10);
        ck_assert_uint_eq(tr_system_messages(fake.system, &target, 1), 11); /* and its constructor */
        target->ops->kill(target);
        struct tr_message *done = fake_message(&asker, 10, "", 0);
        done->kind = TR_MESSAGE_DONE;
        tr_target_watch(target, done);
        fake_system_run_until_outcomes(&fake, &asker, 11);
        ck_assert_uint_eq(tr_system_messages(fake.system, &target, 1), 11);
        ck_assert_uint_eq(tr_system_messages(fake.system, NULL, 0), 11);
        tr_target_unref(target);
}
END_TEST

/* Components */

static struct tr_target *declare(const char *name) {
        char text[256];
        struct tr_manifest_problem problem = { 0 };
        struct tr_manifest *manifest;
        struct tr_component *component;
        snprintf(text, sizeof(text), "{\"name\": \"%s\", \"operations\": {\"a\": {}, \"b\": {}}}", name);
        json_t *json = json_loads(text, 0, NULL);
        ck_assert_ptr_nonnull(json);
        ck_assert_int_eq(tr_manifest_read(json, "/", &problem, &manifest), 0);
        json_decref(json);
        ck_assert_ptr_null(tr_component_declare(fake.system, fake.system->daemon_session, manifest, 0, 0, &component));
        tr_manifest_unref(manifest);
        return &component->target;
}

START_TEST(components_are_there_by_name_and_operation) {
        struct tr_target *components[] = { declare("shop"), declare("bank") };
        tr_metrics_components(&(struct tr_watched){ .system = fake.system }, &to);
        check_has(written(), "\ntroupe_component_size{component=\"bank\",operation=\"a\"} 0\n"
                             "troupe_component_size{component=\"bank\",operation=\"b\"} 0\n"
                             "troupe_component_size{component=\"shop\",operation=\"a\"} 0\n"
                             "troupe_component_size{component=\"shop\",operation=\"b\"} 0\n# ");
        for (size_t i = 0; i < 2; i++)
                tr_target_unref(components[i]);
}
END_TEST

START_TEST(each_allocation_fails_for_components) {
        struct tr_target *components[] = { declare("shop"), declare("bank") };
        long n = 0;
        do {
                tr_writer_deinit(&to.text);
                to = (struct tr_exposition){ 0 };
                failing_arm(++n);
                tr_metrics_components(&(struct tr_watched){ .system = fake.system }, &to);
                failing_arm(0);
                ck_assert_int_eq(tr_writer_error(&to.text) != 0, failing_hit());
        } while (failing_hit());
        ck_assert_int_gt(n, 4);
        for (size_t i = 0; i < 2; i++)
                tr_target_unref(components[i]);
}
END_TEST

START_TEST(each_allocation_fails) {
        struct tr_target *pools[] = { start("thumbs", NULL, 2), start("others", NULL, 1), NULL };
        run_pools(pools, 3);
        long n = 0;
        do {
                tr_writer_deinit(&to.text);
                to = (struct tr_exposition){ 0 };
                failing_arm(++n);
                tr_metrics_pools(&(struct tr_watched){ .system = fake.system }, &to);
                failing_arm(0);
                ck_assert_int_eq(tr_writer_error(&to.text) != 0, failing_hit());
        } while (failing_hit());
        ck_assert_int_gt(n, 4);
        for (size_t i = 0; pools[i]; i++)
                tr_target_unref(pools[i]);
}
END_TEST

int main(void) {
        const TTest *const tests[] = {
                what_would_end_a_value_is_escaped,
                counters_and_infos_have_their_suffixes,
                times_are_histograms_in_seconds,
                every_bound_counts_what_is_not_above_it,
                without_a_pool_there_are_families_only,
                pools_of_one_name_are_added_up,
                what_was_answered_is_counted,
                what_waits_in_a_mailbox_is_its_depth,
                what_the_pool_did_not_route_is_not_counted,
                messages_stay_counted_when_an_actor_ends,
                components_are_there_by_name_and_operation,
                each_allocation_fails_for_components,
                each_allocation_fails,
        };
        return suite_run_with("metrics", setup, teardown, tests, sizeof(tests) / sizeof(tests[0]));
}
