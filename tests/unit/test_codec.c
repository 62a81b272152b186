/* SPDX-License-Identifier: Apache-2.0 */
/* The codec where memory ends, and what its callers choose. What crosses is in codec.lua. */
#include "tests/unit/lua_tests.h"

#include <string.h>

#include "daemon/core/cargo.h"
#include "daemon/core/stock.h"
#include "daemon/script/codec.h"
#include "daemon/script/storage.h"
#include "daemon/script/values.h"
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
        "                ('x'):rep(5000), actor('other').y, troupe.transfer(b) }\n"
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

/* A buffer that a chunk makes and hands over with the value that it answers. */
struct handed_over {
        struct tr_cargo *cargo;
        const struct tr_storage *storage;
        size_t heap_bytes;
};

/* Encodes what the chunk answers, which is an array whose first element is the buffer and whose second hands it over. */
static struct handed_over hand_over(struct fake_vm *fake, const char *chunk) {
        lua_State *L = fake->vm.L;
        struct handed_over over;
        struct tr_bytes *bytes;
        uint64_t before_bytes;

        ck_assert_int_eq(luaL_dostring(L, chunk), LUA_OK);
        lua_rawgeti(L, -1, 1);
        bytes = tr_to_bytes(L, -1);
        over.storage = bytes->storage;
        lua_rawgeti(L, -2, 2);
        tr_writer_reset(&fake->vm.scratch);
        tr_codec_encode(L, -1, 1, TR_FORM_INTERNAL, NULL, &fake->vm.scratch);
        before_bytes = fake->vm.alloc.used_bytes;
        ck_assert(tr_transfer_pack(&fake->vm, &over.cargo));
        over.heap_bytes = before_bytes - fake->vm.alloc.used_bytes;
        ck_assert_ptr_null(bytes->storage);
        ck_assert_uint_eq(bytes->len, 0);
        return over;
}

/* Whatever its size: what the bytes say of it does not grow, and the block is the same. */
START_TEST(what_is_handed_over_is_not_copied) {
        struct fake_vm from, to;
        struct handed_over over;
        struct tr_bytes *bytes;
        uint64_t before_bytes;

        fake_vm_init(&from, HEAP_BYTES);
        fake_vm_init(&to, HEAP_BYTES);
        over = hand_over(&from, "local b = troupe.bytes(1 << 24) return { b, { troupe.transfer(b) } }");
        ck_assert_uint_lt(from.vm.scratch.len, 16);
        ck_assert_ptr_eq(over.cargo->blocks[0].memory, over.storage);
        ck_assert_uint_eq(over.cargo->heap_bytes, over.heap_bytes);
        ck_assert_uint_gt(over.heap_bytes, 1 << 24);

        lua_gc(to.vm.L, LUA_GCCOLLECT);
        before_bytes = to.vm.alloc.used_bytes;
        tr_codec_decode(to.vm.L, from.vm.scratch.data, from.vm.scratch.len, 1, true, over.cargo);
        lua_rawgeti(to.vm.L, -1, 1);
        bytes = tr_to_bytes(to.vm.L, -1);
        ck_assert_ptr_eq(bytes->storage, over.storage);
        ck_assert_uint_eq(bytes->len, 1 << 24);
        ck_assert_uint_ge(to.vm.alloc.used_bytes, before_bytes + over.heap_bytes);
        ck_assert_uint_lt(to.vm.alloc.used_bytes, before_bytes + over.heap_bytes + 1000);
        ck_assert_ptr_null(over.cargo->blocks[0].memory);
        tr_cargo_free(over.cargo);
        fake_vm_deinit(&to);
        fake_vm_deinit(&from);
}
END_TEST

static int decode_over(lua_State *L) {
        const struct tr_writer *writer = lua_touserdata(L, 1);

        tr_codec_decode(L, writer->data, writer->len, 1, true, lua_touserdata(L, 2));
        return 1;
}

/* Decodes in the other VM, protected. Lua's status. */
static int take_over(struct fake_vm *from, struct fake_vm *to, struct tr_cargo *cargo) {
        lua_settop(to->vm.L, 0);
        lua_pushcfunction(to->vm.L, decode_over);
        lua_pushlightuserdata(to->vm.L, &from->vm.scratch);
        lua_pushlightuserdata(to->vm.L, cargo);
        return lua_pcall(to->vm.L, 2, 1, 0);
}

/* All or nothing, at any ceiling; and it can be put back whatever the ceiling is then. */
START_TEST(what_cannot_be_taken_stays_where_it_is) {
        static const char chunk[] = "local a, b = troupe.bytes 'first', troupe.bytes(5000) keep = { a, b }\n"
                                    "return { b, { troupe.transfer(a), x = { troupe.transfer(b), b } } }";
        struct fake_vm from, to;
        struct handed_over over;
        uint64_t before_bytes;
        int status, failed = 0;

        fake_vm_init(&from, HEAP_BYTES);
        fake_vm_init(&to, HEAP_BYTES);
        over = hand_over(&from, chunk);
        ck_assert_uint_eq(over.cargo->count, 2);
        lua_gc(to.vm.L, LUA_GCCOLLECT);
        before_bytes = to.vm.alloc.used_bytes;
        for (uint64_t room_bytes = 0;; room_bytes += 48) {
                to.vm.alloc.max_bytes = before_bytes + room_bytes;
                status = take_over(&from, &to, over.cargo);
                to.vm.alloc.max_bytes = HEAP_BYTES;
                if (status == LUA_OK)
                        break;
                ck_assert_ptr_nonnull(over.cargo->blocks[0].memory);
                ck_assert_ptr_nonnull(over.cargo->blocks[1].memory);
                lua_settop(to.vm.L, 0);
                lua_gc(to.vm.L, LUA_GCCOLLECT);
                ck_assert_uint_le(to.vm.alloc.used_bytes, before_bytes + SLACK_BYTES);
                before_bytes = to.vm.alloc.used_bytes;
                failed++;
        }
        ck_assert_int_gt(failed, 100);
        ck_assert_ptr_null(over.cargo->blocks[0].memory);
        ck_assert_ptr_null(over.cargo->blocks[1].memory);
        tr_cargo_free(over.cargo);

        over = hand_over(&from, chunk);
        from.vm.alloc.max_bytes = from.vm.alloc.used_bytes;
        tr_transfer_put_back(from.vm.L, over.cargo);
        from.vm.alloc.max_bytes = HEAP_BYTES;
        tr_cargo_free(over.cargo);
        lua_settop(from.vm.L, 0);
        fake_vm_run(&from, "assert(tostring(keep[1]) == 'first' and #keep[2] == 5000)");
        fake_vm_deinit(&to);
        fake_vm_deinit(&from);
}
END_TEST

int main(void) {
        tr_stock_disable();
        const TTest *const tests[] = {
                nothing_is_left_at_the_ceiling,
                nothing_is_left_where_memory_ends,
                a_writer_without_memory_is_an_error,
                values_that_are_no_arguments_have_a_name,
                encoding_appends,
                what_is_handed_over_is_not_copied,
                what_cannot_be_taken_stays_where_it_is,
        };

        return lua_tests_main("codec", "tests/unit/codec.lua", tests, sizeof(tests) / sizeof(tests[0]));
}
