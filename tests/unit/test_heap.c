/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "tests/unit/lua_fixture.h"
/* on a machine that is busy, with a sanitizer */
#define SUITE_TIMEOUT_S 120
#include "tests/unit/suite.h"

/* The heap's ceiling: a fault wherever it is reached, and no way for others to reach it. */

static struct lua_fixture fixture;

#define CEILING_FAULT "fault(heap)/yes: the heap ceiling of 4M was reached"

/* Asks an actor with a ceiling of 4 MiB whose module begins with `before` and whose handler runs `body`. */
static char *answer(const char *before, const char *body, const char *argument) {
        static const struct tr_actor_options options = { .heap_bytes = 4 << 20 };
        struct tr_target *target;
        char *module = NULL, *text;

        ck_assert_int_ge(asprintf(&module,
                                  "%s\nlocal A = troupe.actor 'A'\nfunction A.async:run(argument)\n%s\nend\n"
                                  "function A.on:alive() return true end",
                                  before, body),
                         0);
        lua_fixture_module(&fixture, "m", module);
        free(module);
        target = lua_fixture_spawn(&fixture, "m:A", &options);
        text = lua_answer(&fixture, target, "run", argument);
        tr_target_unref(target);
        return text;
}

static void expect(const char *before, const char *body, const char *expected) {
        char *text = answer(before, body, NULL);

        ck_assert_str_eq(text, expected);
        free(text);
}

START_TEST(the_ceiling_is_a_fault) {
        lua_fixture_init(&fixture, 0);
        expect("", "local t = {} for i = 1, 1e9 do t[i] = {} end", CEILING_FAULT);
        expect("", "local s = 'x' while true do s = s .. s end", CEILING_FAULT);
        expect("", "troupe.await(troupe.sleep(1)) local t = {} for i = 1, 1e9 do t[i] = {} end", CEILING_FAULT);
        expect("",
               "troupe.every(1, function() local t = {} for i = 1, 1e9 do t[i] = {} end end) "
               "troupe.await(troupe.sleep(10000))",
               "fault(heap)/maybe: the heap ceiling of 4M was reached");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(catching_it_does_not_help) {
        lua_fixture_init(&fixture, 0);
        expect("local function fill() local t = {} for i = 1, 1e9 do t[i] = {} end end", "return pcall(fill)",
               CEILING_FAULT);
        expect("local function fill() local t = {} for i = 1, 1e9 do t[i] = {} end end",
               "while true do pcall(fill) end", CEILING_FAULT);
        expect("local function fill() local t = {} for i = 1, 1e9 do t[i] = {} end end",
               "local co = coroutine.wrap(function() while true do pcall(fill) end end) while true do pcall(co) end",
               CEILING_FAULT);
        expect("local function fill() local t = {} for i = 1, 1e9 do t[i] = {} end end",
               "while true do pcall(string.gsub, ('x'):rep(100), '.', fill) end", CEILING_FAULT);
        expect("local function fill() local t = {} for i = 1, 1e9 do t[i] = {} end end",
               "while true do xpcall(fill, fill) end", CEILING_FAULT);
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(buffers_count) {
        lua_fixture_init(&fixture, 0);
        expect("", "local b = troupe.bytes(5 << 20)", CEILING_FAULT);
        expect("", "local b = troupe.bytes(1) while true do b:append(b) end", CEILING_FAULT);
        expect("", "local b = troupe.bytes(3 << 20) return pcall(b.sub, b, 1, 2 << 20)", CEILING_FAULT);
        expect("", "return pcall(troupe.bytes, math.maxinteger)", CEILING_FAULT);
        expect("", "for i = 1, 100 do local b = troupe.bytes(3 << 20) end return 1", "1");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(garbage_does_not_count) {
        lua_fixture_init(&fixture, 0);
        expect("", "for i = 1, 200 do local s = ('x'):rep(1 << 20) end return 1", "1");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(what_could_never_fit_reaches_it_at_once) {
        lua_fixture_init(&fixture, 0);
        expect("", "return ('x'):rep(1 << 40)", CEILING_FAULT);
        expect("", "return #('x'):rep((1 << 20) * 60)", CEILING_FAULT);
        expect("", "return select(2, pcall(string.rep, 'x', 1 << 40))", CEILING_FAULT);
        expect("", "return select(2, pcall(string.rep, '', 1 << 40))", "\"resulting string too large\"");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(a_module_reaches_it_too) {
        static const struct tr_actor_options options = { .heap_bytes = 4 << 20 };
        struct tr_target *target;

        lua_fixture_init(&fixture, 0);
        lua_fixture_module(&fixture, "m", "local t = {} for i = 1, 1e9 do t[i] = {} end");
        target = lua_fixture_spawn(&fixture, "m", &options);
        ck_assert_end(&fixture, target, CEILING_FAULT);
        tr_target_unref(target);
        lua_fixture_deinit(&fixture);
}
END_TEST

/* However it comes into the VM. */
START_TEST(a_compiled_module_counts) {
        static const struct tr_actor_options options = { .heap_bytes = 1 << 20 };
        struct tr_target *target;
        char *text = NULL;
        size_t len;
        FILE *out = open_memstream(&text, &len);

        fputs("local A = troupe.actor 'A' function A.on:count() return #F end F = {", out);
        for (int i = 0; i < 8000; i++)
                fputs("function()end,", out);
        fputs("}", out);
        fclose(out);
        lua_fixture_init(&fixture, 0);
        lua_fixture_module(&fixture, "m", text);
        free(text);
        for (int i = 0; i < 2; i++) {
                target = lua_fixture_spawn(&fixture, "m", NULL);
                ck_assert_answer(&fixture, target, "count", "8000");
                tr_target_unref(target);
                target = lua_fixture_spawn(&fixture, "m", &options);
                ck_assert_end(&fixture, target, "fault(heap)/yes: the heap ceiling of 1M was reached");
                tr_target_unref(target);
        }
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(a_ceiling_that_holds_no_vm_fails_the_spawn) {
        static const struct tr_actor_options options = { .heap_bytes = 4 << 10 };
        struct tr_target *target;

        lua_fixture_init(&fixture, 0);
        lua_fixture_module(&fixture, "m", "troupe.actor 'A'");
        target = lua_fixture_spawn(&fixture, "m", &options);
        ck_assert_end(&fixture, target, "no-memory/no: no room for the actor's runtime: its heap is too small");
        tr_target_unref(target);
        lua_fixture_deinit(&fixture);
}
END_TEST

/* Nobody kills an actor by the size of what he sends. */
START_TEST(a_message_that_does_not_fit_is_refused) {
        static const struct tr_actor_options options = { .heap_bytes = 4 << 20 };
        struct tr_target *target;
        char *large, *text;

        lua_fixture_init(&fixture, 0);
        lua_fixture_module(&fixture, "m", "local A = troupe.actor 'A' function A.on:run(s) return #s end");
        target = lua_fixture_spawn(&fixture, "m", &options);
        large = malloc((8 << 20) + 1);
        ck_assert_ptr_nonnull(large);
        memset(large, 'x', 8 << 20);
        large[8 << 20] = 0;
        text = lua_answer(&fixture, target, "run", large);
        ck_assert_str_eq(text, "too-large/no: the message does not fit in the actor's heap");
        free(text);
        /* less than the ceiling, and more than leaves an eighth of it */
        large[(4 << 20) - (4 << 17)] = 0;
        text = lua_answer(&fixture, target, "run", large);
        ck_assert_str_eq(text, "too-large/no: the message does not fit in the actor's heap");
        free(text);
        large[1 << 20] = 0;
        for (int i = 0; i < 20; i++) {
                text = lua_answer(&fixture, target, "run", large);
                ck_assert_str_eq(text, "1048576");
                free(text);
        }
        free(large);
        tr_target_unref(target);
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(an_answer_that_does_not_fit_rejects_its_promise) {
        lua_fixture_init(&fixture, 0);
        expect("local B = troupe.actor 'B' function B.on:large() return ('x'):rep(8 << 20) end",
               "local ok, e = pcall(troupe.await, troupe.ask(troupe.spawn(B).large))\n"
               "return { ok, e.code, e.ran, e.message }",
               "[false,\"too-large\",\"yes\",\"the answer does not fit in the actor's heap\"]");
        lua_fixture_deinit(&fixture);
}
END_TEST

suite_main("heap", the_ceiling_is_a_fault, catching_it_does_not_help, buffers_count, garbage_does_not_count,
           what_could_never_fit_reaches_it_at_once, a_module_reaches_it_too, a_compiled_module_counts,
           a_ceiling_that_holds_no_vm_fails_the_spawn, a_message_that_does_not_fit_is_refused,
           an_answer_that_does_not_fit_rejects_its_promise);
