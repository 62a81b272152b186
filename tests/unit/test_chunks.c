/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled chunks: found by text and name and by nothing else, as many as are said, and by many threads at once. */
#include "daemon/script/chunks.h"

#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/failing.h"
#include "tests/unit/suite.h"

#define PLENTY ((size_t)1 << 20)
#define THREADS 4
#define ROUNDS 2000
#define TEXTS 6

static lua_State *L;

static void open_state(void) {
        L = luaL_newstate();
        luaL_openlibs(L);
}

static void close_state(void) {
        lua_close(L);
}

/* The digests of texts are made up: one per number. */
static const uint8_t *digest_of(int number, uint8_t ret_digest[TR_CHUNK_DIGEST_BYTES]) {
        memset(ret_digest, 0, TR_CHUNK_DIGEST_BYTES);
        ret_digest[TR_CHUNK_DIGEST_BYTES - 1] = (uint8_t)number;
        return ret_digest;
}

/* Compiles a text and has it kept. Any thread: asserts nothing. */
static bool keep_text(struct tr_chunks *chunks, lua_State *state, int number, const char *name, const char *text) {
        uint8_t digest[TR_CHUNK_DIGEST_BYTES];
        bool compiled = luaL_loadbufferx(state, text, strlen(text), name, "t") == LUA_OK;

        if (compiled)
                tr_chunks_keep(chunks, state, digest_of(number, digest), name);
        lua_pop(state, 1);
        return compiled;
}

static void keep(struct tr_chunks *chunks, int number, const char *name) {
        char text[64];

        snprintf(text, sizeof(text), "return %d", number);
        ck_assert(keep_text(chunks, L, number, name, text));
}

static struct tr_chunk *find(struct tr_chunks *chunks, int number, const char *name) {
        uint8_t digest[TR_CHUNK_DIGEST_BYTES];

        return tr_chunks_find(chunks, digest_of(number, digest), name);
}

static bool has(struct tr_chunks *chunks, int number) {
        struct tr_chunk *chunk = find(chunks, number, "=m");

        tr_chunk_unref(chunk);
        return chunk;
}

/* What it answers, by the chunk that is kept. */
static void check_answers(struct tr_chunks *chunks, int number, const char *name, const char *expected) {
        struct tr_chunk *chunk = find(chunks, number, name);

        ck_assert_ptr_nonnull(chunk);
        ck_assert_int_eq(tr_chunk_load(L, chunk), LUA_OK);
        tr_chunk_unref(chunk);
        lua_pcall(L, 0, 1, 0);
        ck_assert_str_eq(lua_tostring(L, -1), expected);
        lua_pop(L, 1);
}

START_TEST(one_is_found_by_its_text_and_its_name) {
        struct tr_chunks chunks = TR_CHUNKS_INIT(chunks, 8, PLENTY);

        ck_assert_ptr_null(find(&chunks, 1, "=a"));
        keep(&chunks, 1, "=a");
        check_answers(&chunks, 1, "=a", "1");
        ck_assert_ptr_null(find(&chunks, 2, "=a"));
        ck_assert_ptr_null(find(&chunks, 1, "=ab"));
        keep(&chunks, 2, "=a");
        check_answers(&chunks, 1, "=a", "1");
        check_answers(&chunks, 2, "=a", "2");
        tr_chunks_drop(&chunks);
        ck_assert_ptr_null(find(&chunks, 1, "=a"));
}
END_TEST

START_TEST(its_errors_are_those_of_its_text) {
        static const char text[] = "local function inner(x)\n  return x.field.of\nend\ninner {}";
        struct tr_chunks chunks = TR_CHUNKS_INIT(chunks, 8, PLENTY);

        ck_assert(keep_text(&chunks, L, 1, "@one.lua", text));
        ck_assert(keep_text(&chunks, L, 1, "@two.lua", text));
        check_answers(&chunks, 1, "@one.lua", "one.lua:2: attempt to index a nil value (field 'field')");
        check_answers(&chunks, 1, "@two.lua", "two.lua:2: attempt to index a nil value (field 'field')");
        tr_chunks_drop(&chunks);
}
END_TEST

START_TEST(what_was_used_last_the_longest_ago_makes_room) {
        struct tr_chunks chunks = TR_CHUNKS_INIT(chunks, 3, PLENTY);

        keep(&chunks, 1, "=m");
        keep(&chunks, 2, "=m");
        keep(&chunks, 3, "=m");
        ck_assert(has(&chunks, 1));
        keep(&chunks, 4, "=m");
        ck_assert(has(&chunks, 1));
        ck_assert(!has(&chunks, 2));
        ck_assert(has(&chunks, 3));
        ck_assert(has(&chunks, 4));
        ck_assert_uint_eq(chunks.count, 3);
        tr_chunks_drop(&chunks);
        ck_assert_uint_eq(chunks.count, 0);
        ck_assert_uint_eq(chunks.bytes, 0);
}
END_TEST

START_TEST(one_that_is_kept_twice_is_there_once) {
        struct tr_chunks chunks = TR_CHUNKS_INIT(chunks, 3, PLENTY);
        size_t bytes;

        keep(&chunks, 1, "=m");
        bytes = chunks.bytes;
        keep(&chunks, 1, "=m");
        ck_assert_uint_eq(chunks.count, 1);
        ck_assert_uint_eq(chunks.bytes, bytes);
        tr_chunks_drop(&chunks);
}
END_TEST

START_TEST(bytes_are_bounded) {
        struct tr_chunks probe = TR_CHUNKS_INIT(probe, 8, PLENTY);
        size_t one;

        keep(&probe, 1, "=m");
        one = probe.bytes;
        tr_chunks_drop(&probe);

        struct tr_chunks two_fit = TR_CHUNKS_INIT(two_fit, 8, 2 * one),
                         none_fits = TR_CHUNKS_INIT(none_fits, 8, one - 1);
        keep(&two_fit, 1, "=m");
        keep(&two_fit, 2, "=m");
        ck_assert(has(&two_fit, 1) && has(&two_fit, 2));
        keep(&two_fit, 3, "=m");
        ck_assert(!has(&two_fit, 1) && has(&two_fit, 2) && has(&two_fit, 3));
        ck_assert_uint_eq(two_fit.bytes, 2 * one);
        keep(&none_fits, 1, "=m");
        ck_assert(!has(&none_fits, 1));
        ck_assert_uint_eq(none_fits.bytes, 0);
        tr_chunks_drop(&two_fit);
}
END_TEST

/* Somebody loads it still. */
START_TEST(one_that_had_to_go_is_there_for_who_has_it) {
        struct tr_chunks chunks = TR_CHUNKS_INIT(chunks, 1, PLENTY);
        struct tr_chunk *chunk;

        keep(&chunks, 1, "=m");
        chunk = find(&chunks, 1, "=m");
        keep(&chunks, 2, "=m");
        ck_assert(!has(&chunks, 1));
        ck_assert_int_eq(tr_chunk_load(L, chunk), LUA_OK);
        tr_chunk_unref(chunk);
        ck_assert_int_eq(lua_pcall(L, 0, 1, 0), LUA_OK);
        ck_assert_int_eq(lua_tointeger(L, -1), 1);
        tr_chunks_drop(&chunks);
}
END_TEST

START_TEST(without_memory_none_is_kept) {
        struct tr_chunks chunks = TR_CHUNKS_INIT(chunks, 8, PLENTY);
        bool compiled;
        long n = 0;

        do {
                failing_arm(++n);
                compiled = keep_text(&chunks, L, 1, "=m", "return 1");
                failing_arm(0);
                ck_assert(compiled);
                ck_assert_int_eq(has(&chunks, 1), !failing_hit());
                ck_assert_int_eq(chunks.count > 0, !failing_hit());
        } while (failing_hit());
        ck_assert_int_gt(n, 1);
        tr_chunks_drop(&chunks);
}
END_TEST

static struct tr_chunks shared = TR_CHUNKS_INIT(shared, TEXTS / 2, PLENTY);

/* Loads all of them over and over, and compiles what is not there. */
static void *load_all(void *data) {
        lua_State *own = luaL_newstate();
        uintptr_t wrong = 0;

        for (int round = 0; round < ROUNDS; round++) {
                int number = (round * 7 + (int)(uintptr_t)data) % TEXTS;
                struct tr_chunk *chunk = find(&shared, number, "=m");
                char text[64];

                if (chunk) {
                        wrong += tr_chunk_load(own, chunk) != LUA_OK || lua_pcall(own, 0, 1, 0) != LUA_OK ||
                                 lua_tointeger(own, -1) != number;
                        lua_pop(own, 1);
                        tr_chunk_unref(chunk);
                } else {
                        snprintf(text, sizeof(text), "return %d", number);
                        wrong += !keep_text(&shared, own, number, "=m", text);
                }
        }
        lua_close(own);
        return (void *)wrong;
}

START_TEST(many_load_at_once) {
        pthread_t threads[THREADS];
        void *wrong;

        for (uintptr_t i = 0; i < THREADS; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, load_all, (void *)i), 0);
        for (int i = 0; i < THREADS; i++) {
                ck_assert_int_eq(pthread_join(threads[i], &wrong), 0);
                ck_assert_ptr_null(wrong);
        }
        ck_assert_uint_eq(shared.count, TEXTS / 2);
        tr_chunks_drop(&shared);
}
END_TEST

suite_main_with("chunks", open_state, close_state, one_is_found_by_its_text_and_its_name,
                its_errors_are_those_of_its_text, what_was_used_last_the_longest_ago_makes_room,
                one_that_is_kept_twice_is_there_once, bytes_are_bounded, one_that_had_to_go_is_there_for_who_has_it,
                without_memory_none_is_kept, many_load_at_once);
