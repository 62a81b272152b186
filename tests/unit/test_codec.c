/* SPDX-License-Identifier: Apache-2.0 */
/* The codec where memory ends, and what its callers choose. What crosses is in codec.lua. */
#include "tests/unit/lua_tests.h"

#include <string.h>

#include "daemon/script/codec.h"
#include "tests/unit/failing.h"
#include "tests/unit/fake_vm.h"

#define HEAP_BYTES (UINT64_C(64) << 20)
/* What a VM may hold more of after an error than before: tables that grew, no values. */
#define SLACK_BYTES 4096

/* `go` sends one of everything through each form; the function is left on the stack. */
static const char everything[] =
        "local h, b, shared = actor 'counter', troupe.bytes(('x'):rep(3000)), { 1, 2, 3 }\n"
        "local many = {}\n"
        "for i = 1, 40 do many[i] = { i, 'a string of its own ' .. i, i + 0.5 } end\n"
        "local value = { h, h.total, b, b:sub(1, 9), shared, { s = shared }, Point.new(shared, h.x), many, null,\n"
        "                troupe.timestamp(1, 2), troupe.map {}, troupe.array { 1, [3] = 3 }, { [1.5] = true, [true] = "
        "1 },\n"
        "                ('x'):rep(5000), actor('other').y }\n"
        "go = function()\n"
        "  for _, form in ipairs { 'internal', 'typed', 'plain' } do\n"
        "    local got = cross(form, value, 7, value)\n"
        "    assert(got[8][40][1] == 40)\n"
        "  end\n"
        "  pcall(encode, 'typed', { deep = { down = { print } } })\n"
        "  pcall(decode, 'typed', '\\x82\\xa1a\\x01\\xa1a\\x02')\n"
        "end\n"
        "go()\n";

static void init(struct fake_vm *fake) {
        fake_vm_init(fake, HEAP_BYTES);
        fake_vm_run(fake, everything);
        lua_getglobal(fake->vm.L, "go");
}

/* Calls `go`, with whatever limit is set now; answers lua_pcall()'s status. */
static int go(struct fake_vm *fake) {
        lua_pushvalue(fake->vm.L, 1);
        return lua_pcall(fake->vm.L, 0, 0, 0);
}

/* Nothing but what was there before: values, targets, stack. */
static void check_clean(struct fake_vm *fake, uint64_t before_bytes) {
        lua_settop(fake->vm.L, 1);
        lua_gc(fake->vm.L, LUA_GCCOLLECT);
        ck_assert_uint_le(fake->vm.alloc.used_bytes, before_bytes + SLACK_BYTES);
        ck_assert_uint_eq(fake->targets, 2);
}

START_TEST(nothing_is_left_at_the_ceiling) {
        struct fake_vm fake;
        uint64_t before_bytes;
        int status, failed = 0;

        init(&fake);
        lua_gc(fake.vm.L, LUA_GCCOLLECT);
        before_bytes = fake.vm.alloc.used_bytes;
        for (uint64_t room_bytes = 0;; room_bytes += 48) {
                fake.vm.alloc.max_bytes = fake.vm.alloc.used_bytes + room_bytes;
                status = go(&fake);
                fake.vm.alloc.max_bytes = HEAP_BYTES;
                check_clean(&fake, before_bytes);
                if (status == LUA_OK)
                        break;
                failed++;
        }
        ck_assert_int_gt(failed, 100);
        fake_vm_deinit(&fake);
}
END_TEST

START_TEST(nothing_is_left_where_memory_ends) {
        struct fake_vm fake;
        uint64_t before_bytes;
        long after = 0;

        init(&fake);
        lua_gc(fake.vm.L, LUA_GCCOLLECT);
        before_bytes = fake.vm.alloc.used_bytes;
        do {
                /* so that the scratch has to grow again each time */
                tr_writer_deinit(&fake.vm.scratch);
                failing_arm(++after);
                /* Lua itself tries again, so that most of these end well */
                (void)go(&fake);
                failing_arm(0);
                check_clean(&fake, before_bytes);
        } while (failing_hit());
        ck_assert_int_gt(after, 100);
        ck_assert_int_eq(go(&fake), LUA_OK);
        fake_vm_deinit(&fake);
}
END_TEST

START_TEST(a_writer_without_memory_is_an_error) {
        struct fake_vm fake;
        long after = 0;
        int status;

        fake_vm_init(&fake, HEAP_BYTES);
        fake_vm_run(&fake, "go = function() encode('typed', ('x'):rep(1000)) end");
        lua_getglobal(fake.vm.L, "go");
        do {
                tr_writer_deinit(&fake.vm.scratch);
                failing_arm(++after);
                status = go(&fake);
                failing_arm(0);
        } while (status == LUA_OK && failing_hit());
        ck_assert_int_eq(status, LUA_ERRRUN);
        lua_getfield(fake.vm.L, -1, "code");
        ck_assert_str_eq(lua_tostring(fake.vm.L, -1), "no-memory");
        fake_vm_deinit(&fake);
}
END_TEST

static int encode_answer(lua_State *L) {
        struct tr_writer *scratch = &tr_vm_of(L)->scratch;

        tr_codec_encode(L, 1, 1, TR_FORM_PLAIN, "the answer", scratch);
        return 0;
}

static void check_refusal(lua_State *L, const char *chunk, const char *message) {
        lua_pushcfunction(L, encode_answer);
        ck_assert_int_eq(luaL_dostring(L, chunk), LUA_OK);
        ck_assert_int_eq(lua_pcall(L, 1, 0, 0), LUA_ERRRUN);
        lua_getfield(L, -1, "message");
        ck_assert_str_eq(lua_tostring(L, -1), message);
        lua_settop(L, 0);
}

START_TEST(values_that_are_no_arguments_have_a_name) {
        struct fake_vm fake;

        fake_vm_init(&fake, HEAP_BYTES);
        check_refusal(fake.vm.L, "return print", "a message may not carry a function: `the answer` is a function");
        check_refusal(fake.vm.L, "return { x = print }", "a message may not carry a function: `x` is a function");
        fake_vm_deinit(&fake);
}
END_TEST

/* One writer takes more than one thing: what was there before stays in front. */
START_TEST(encoding_appends) {
        static const uint8_t want[] = { 0x01, 0xd4, 64, 0x00, 0x92, 0x90, 0xd6, 65, 0x00, 0x00, 0x00, 0x01 };
        struct tr_writer *scratch;
        struct fake_vm fake;
        lua_State *L;

        fake_vm_init(&fake, HEAP_BYTES);
        L = fake.vm.L;
        scratch = &fake.vm.scratch;
        tr_write_int(scratch, 1);
        ck_assert_int_eq(luaL_dostring(L, "local t = {}; return { t, t }"), LUA_OK);
        tr_codec_encode(L, -1, 1, TR_FORM_INTERNAL, NULL, scratch);
        ck_assert_uint_eq(scratch->len, sizeof(want));
        ck_assert_mem_eq(scratch->data, want, sizeof(want));
        tr_codec_decode(L, scratch->data + 1, scratch->len - 1, 1, true, NULL);
        lua_rawgeti(L, -1, 1);
        lua_rawgeti(L, -2, 2);
        ck_assert(lua_rawequal(L, -1, -2));
        fake_vm_deinit(&fake);
}
END_TEST

int main(void) {
        const TTest *const tests[] = {
                nothing_is_left_at_the_ceiling,
                nothing_is_left_where_memory_ends,
                a_writer_without_memory_is_an_error,
                values_that_are_no_arguments_have_a_name,
                encoding_appends,
        };

        return lua_tests_main("codec", "tests/unit/codec.lua", tests, sizeof(tests) / sizeof(tests[0]));
}
