/* SPDX-License-Identifier: Apache-2.0 */
/* The stock of blocks: what one thread frees another gets, no block is two threads' at once, and no more is kept than is said. */
#include "config.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "daemon/core/stock.h"
#include "tests/unit/failing.h"
#include "tests/unit/suite.h"

#define MANY (TR_STOCK_MAX + 10 * TR_STOCK_CRATE)
#define ROUNDS 2000
#define HANDS 4

static void *blocks[MANY];

static void make_all(size_t count, size_t bytes) {
        for (size_t i = 0; i < count; i++)
                ck_assert_ptr_nonnull(blocks[i] = tr_stock_alloc(bytes));
}

static void free_all(size_t count, size_t bytes) {
        for (size_t i = 0; i < count; i++)
                tr_stock_free(blocks[i], bytes);
}

#ifndef TR_SANITIZED
/* How many are to be had without malloc(). They stay in `blocks`. */
static size_t count_kept(size_t bytes) {
        size_t count = 0;
        for (void *block; count < MANY; count++) {
                failing_arm(1);
                block = tr_stock_alloc(bytes);
                failing_arm(0);
                if (!block)
                        break;
                blocks[count] = block;
        }
        return count;
}

static void *free_elsewhere(void *data) {
        free_all(*(size_t *)data, 1);
        tr_stock_hand_in();
        return NULL;
}

static void free_on_another_thread(size_t count) {
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, free_elsewhere, &count), 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

START_TEST(what_another_thread_frees_is_to_be_had) {
        make_all(100, 1);
        ck_assert_uint_eq(count_kept(1), 0);
        free_on_another_thread(100);
        ck_assert_uint_eq(count_kept(TR_STOCK_BLOCK_BYTES), 100);
        free_all(100, TR_STOCK_BLOCK_BYTES);
}
END_TEST

START_TEST(no_more_is_kept_than_is_said) {
        make_all(MANY, 1);
        free_on_another_thread(MANY);
        ck_assert_uint_eq(count_kept(1), TR_STOCK_MAX);
        free_all(TR_STOCK_MAX, 1);
        tr_stock_hand_in();
}
END_TEST

START_TEST(what_is_larger_is_not_kept) {
        make_all(10, TR_STOCK_BLOCK_BYTES + 1);
        free_all(10, TR_STOCK_BLOCK_BYTES + 1);
        ck_assert_uint_eq(count_kept(TR_STOCK_BLOCK_BYTES + 1), 0);
        ck_assert_uint_eq(count_kept(1), 0);
}
END_TEST
#endif

/* What a hand makes the next one frees. */
static struct {
        pthread_mutex_t lock;
        void *given[TR_STOCK_CRATE * 3];
        size_t count;
} between[HANDS] = { [0 ... HANDS - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER } };

static void take_from(size_t hand) {
        pthread_mutex_lock(&between[hand].lock);
        while (between[hand].count > 0) {
                uint64_t *block = between[hand].given[--between[hand].count];
                ck_assert_uint_eq(block[0], hand);
                ck_assert_uint_eq(block[TR_STOCK_BLOCK_BYTES / sizeof(*block) - 1], (uintptr_t)block);
                memset(block, 0xee, TR_STOCK_BLOCK_BYTES);
                tr_stock_free(block, TR_STOCK_BLOCK_BYTES);
        }
        pthread_mutex_unlock(&between[hand].lock);
}

static void *make_and_free(void *data) {
        size_t hand = (size_t)(uintptr_t)data;
        for (size_t round = 0; round < ROUNDS; round++) {
                pthread_mutex_lock(&between[hand].lock);
                for (size_t room = sizeof(between[hand].given) / sizeof(void *); between[hand].count < (round * 7) % room;) {
                        uint64_t *block = tr_stock_alloc(TR_STOCK_BLOCK_BYTES);
                        ck_assert_ptr_nonnull(block);
                        block[0] = hand;
                        block[TR_STOCK_BLOCK_BYTES / sizeof(*block) - 1] = (uintptr_t)block;
                        between[hand].given[between[hand].count++] = block;
                }
                pthread_mutex_unlock(&between[hand].lock);
                take_from((hand + 1) % HANDS);
                if (round % 100 == 0)
                        tr_stock_hand_in();
        }
        tr_stock_hand_in();
        return NULL;
}

START_TEST(no_block_is_two_threads_at_once) {
        pthread_t threads[HANDS];
        for (size_t i = 0; i < HANDS; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, make_and_free, (void *)(uintptr_t)i), 0);
        for (size_t i = 0; i < HANDS; i++)
                ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        for (size_t i = 0; i < HANDS; i++)
                take_from(i);
}
END_TEST

START_TEST(no_block_may_be_freed) {
        make_all(1, 1);
        tr_stock_free(NULL, 1);
        tr_stock_hand_in();
        free_all(1, 1);
}
END_TEST

suite_main("stock",
#ifndef TR_SANITIZED
           what_another_thread_frees_is_to_be_had, no_more_is_kept_than_is_said, what_is_larger_is_not_kept,
#endif
           no_block_is_two_threads_at_once, no_block_may_be_freed);
