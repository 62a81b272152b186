/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codec on any bytes, as a peer's and as another VM's: they are refused with an error of the library, or they are
 * values that cross again and arrive the same.
 */
#include <string.h>

#include "daemon/script/codec.h"
#include "daemon/script/extension.h"
#include "daemon/script/values.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/fake_vm.h"

#define HEAP_BYTES (UINT64_C(256) << 20)
/* Values looked at in one comparison: shared structure can be walked without end. */
#define LOOKS_MAX 20000
/* Inputs of one VM; at its end nothing may be left. */
#define VM_INPUTS 5000

struct input {
        const uint8_t *data;
        size_t bytes;
        bool internal;
};

static struct fake_vm fake;
static unsigned inputs;

static bool same(lua_State *L, int a, int b, int *looks);

/* Two tables at absolute indices: marks, metatables, and the same under each key. */
static bool same_table(lua_State *L, int a, int b, int *looks) {
        bool is_same = true;
        int keys = 0;

        luaL_checkstack(L, 10, NULL);
        if (tr_mark_of(L, a) != tr_mark_of(L, b))
                return false;
        if (lua_getmetatable(L, a)) {
                is_same = lua_getmetatable(L, b) && lua_rawequal(L, -1, -2);
                lua_pop(L, is_same ? 2 : 1);
        }
        for (lua_pushnil(L); is_same && lua_next(L, a); keys++) {
                lua_pushvalue(L, -2);
                lua_rawget(L, b);
                is_same = same(L, lua_gettop(L) - 1, lua_gettop(L), looks);
                lua_pop(L, is_same ? 2 : 3);
        }
        for (lua_pushnil(L); is_same && lua_next(L, b); keys--)
                lua_pop(L, 1);
        return is_same && keys == 0;
}

static bool same(lua_State *L, int a, int b, int *looks) {
        if (--*looks < 0)
                return true;
        if (lua_type(L, a) != lua_type(L, b))
                return false;
        switch (lua_type(L, a)) {
        case LUA_TTABLE:
                return same_table(L, a, b, looks);
        case LUA_TNUMBER: {
                lua_Number x = lua_tonumber(L, a), y = lua_tonumber(L, b);

                return lua_isinteger(L, a) == lua_isinteger(L, b) &&
                       (lua_isinteger(L, a) ? lua_rawequal(L, a, b) : memcmp(&x, &y, sizeof(x)) == 0);
        }
        default:
                return lua_compare(L, a, b, LUA_OPEQ);
        }
}

/* Sends the value at the top of the stack to a peer, who must be able to read it. */
static void send_to_peer(lua_State *L, enum tr_form form) {
        struct tr_writer *scratch = &tr_vm_of(L)->scratch;
        struct tr_reader reader;

        tr_writer_reset(scratch);
        tr_codec_encode(L, -1, 1, form, NULL, scratch);
        reader = tr_reader(scratch->data, scratch->len);
        FUZZ_CHECK(tr_read_skip(&reader) == 0 && reader.at == reader.end);
        if (form != TR_FORM_TYPED)
                return;
        tr_codec_decode(L, scratch->data, scratch->len, 1, false, NULL);
        lua_pop(L, 1);
}

static int decode_input(lua_State *L) {
        const struct input *input = lua_touserdata(L, 1);

        tr_codec_decode(L, input->data, input->bytes, 1, input->internal, NULL);
        return 1;
}

/* What was decoded crosses again, to a VM and, where it has no cycles, to a peer. */
static int cross_again(lua_State *L) {
        struct tr_writer *scratch = &tr_vm_of(L)->scratch;
        int looks = LOOKS_MAX;
        bool shared;

        tr_writer_reset(scratch);
        tr_codec_encode(L, 1, 1, TR_FORM_INTERNAL, NULL, scratch);
        shared = scratch->len > 1 && scratch->data[0] == 0xd4 && scratch->data[1] == TR_EXT_SHARED;
        tr_codec_decode(L, scratch->data, scratch->len, 1, true, NULL);
        FUZZ_CHECK(same(L, 1, 2, &looks));
        lua_settop(L, 1);
        if (!shared) {
                send_to_peer(L, TR_FORM_TYPED);
                send_to_peer(L, TR_FORM_PLAIN);
        }
        return 0;
}

static void try(const uint8_t *data, size_t bytes, bool internal) {
        struct input input = { data, bytes, internal };
        lua_State *L = fake.vm.L;

        lua_settop(L, 0);
        lua_pushcfunction(L, decode_input);
        lua_pushlightuserdata(L, &input);
        if (lua_pcall(L, 1, 1, 0) != LUA_OK) {
                FUZZ_CHECK(tr_script_is_failure(L, -1));
                return;
        }
        lua_pushcfunction(L, cross_again);
        lua_insert(L, 1);
        FUZZ_CHECK(lua_pcall(L, 1, 0, 0) == LUA_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
        if (inputs == 0)
                fake_vm_init(&fake, HEAP_BYTES);
        try(data, bytes, false);
        try(data, bytes, true);
        if (++inputs == VM_INPUTS) {
                fake_vm_deinit(&fake);
                inputs = 0;
        }
        return 0;
}

void fuzz_seeds(void (*add)(const uint8_t *data, size_t bytes)) {
        static const struct {
                uint8_t bytes[40];
                size_t count;
        } internal[] = {
                /* {t, t}; a list in itself; a marked map and array; null; an instance, twice */
                { { 0xd4, 64, 0, 0x92, 0x90, 0xd6, 65, 0, 0, 0, 1 }, 11 },
                { { 0xd4, 64, 0, 0x91, 0xd6, 65, 0, 0, 0, 0 }, 10 },
                { { 0x92, 0xd4, 66, 2, 0x81, 0x01, 0x02, 0xd4, 66, 1, 0x92, 0xc0, 0x01 }, 13 },
                { { 0xd4, 68, 0 }, 3 },
                { "\xd4\x45\0\x81\xa7message\xa2no", 15 },
                { "\xd4\x40\0\x92\xc7\x0b\x43shape:Point\x81\xa1x\x01\xd6\x41\0\0\0\x01", 30 },
        };

        fuzz_seeds_from_vectors(add);
        for (size_t i = 0; i < sizeof(internal) / sizeof(internal[0]); i++)
                add(internal[i].bytes, internal[i].count);
}
