/* SPDX-License-Identifier: Apache-2.0 */
/* Mailboxes: bounds, order, closing, and that the receiver is woken. */
#include <pthread.h>
#include <stdlib.h>

#include "daemon/core/mailbox.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/suite.h"

static struct tr_mailbox mailbox;
static struct tr_message *taken[TR_MAILBOX_BATCH];
static struct tr_list answers;

static void setup(void) {
        tr_mailbox_init(&mailbox, 4, 100);
        tr_list_init(&answers);
}

static void teardown(void) {
        struct tr_list queue = TR_LIST_INIT(queue), in_hand = TR_LIST_INIT(in_hand);
        tr_mailbox_close_and_take(&mailbox, &queue, &in_hand, &answers);
        struct tr_message *message;
        tr_list_splice(&queue, &in_hand);
        tr_list_for_each(message, &queue, link) {
                tr_list_unlink(&message->link);
                tr_message_unref(message);
        }
        tr_mailbox_deinit(&mailbox);
}

static enum tr_post post(struct tr_message *message) {
        struct tr_list list = TR_LIST_INIT(list);
        tr_list_append(&list, &message->link);
        enum tr_post result = tr_mailbox_post(&mailbox, &list);
        ck_assert(tr_list_is_empty(&list) == (result == TR_POST_OK));
        if (result != TR_POST_OK) {
                tr_list_unlink(&message->link);
                tr_message_unref(message);
        }
        return result;
}

/* Into `taken`; answers how many. */
static uint32_t take(struct tr_mailbox *from, bool answers_only, struct tr_message *finished) {
        uint32_t count = 0;
        for (struct tr_message *message = tr_mailbox_take(from, answers_only ? 0 : TR_MAILBOX_BATCH, finished, &answers); message;
             message = message->next_in_hand)
                taken[count++] = message;
        return count;
}

static struct tr_message *sized(size_t bytes) {
        char *args = calloc(1, bytes + 1);
        struct tr_message *message = tr_message_new(TR_MESSAGE_HANDLER, "", 0, args, bytes, 0);
        free(args);
        return message;
}

START_TEST(full_by_count_and_gives_way_again) {
        for (int i = 0; i < 4; i++)
                ck_assert_int_eq(post(fake_message(NULL, 0, "h", i)), TR_POST_OK);
        ck_assert_int_eq(post(fake_message(NULL, 0, "h", 4)), TR_POST_FULL);

        /* Taken out but not begun still counts. */
        ck_assert_uint_eq(take(&mailbox, false, NULL), 4);
        ck_assert_int_eq(post(fake_message(NULL, 0, "h", 4)), TR_POST_FULL);
        ck_assert(tr_mailbox_begin(&mailbox, taken[0]));
        ck_assert_int_eq(post(fake_message(NULL, 0, "h", 4)), TR_POST_OK);
}
END_TEST

START_TEST(full_by_bytes) {
        ck_assert_int_eq(post(sized(60)), TR_POST_OK);
        ck_assert_int_eq(post(sized(41)), TR_POST_FULL);
        ck_assert_int_eq(post(sized(40)), TR_POST_OK);
        ck_assert_int_eq(post(sized(1)), TR_POST_FULL);
        ck_assert_int_eq(post(sized(101)), TR_POST_TOO_LARGE);
}
END_TEST

START_TEST(a_list_is_taken_in_order_up_to_the_first_refusal) {
        struct tr_list list = TR_LIST_INIT(list);
        struct tr_message *messages[6];
        for (int i = 0; i < 6; i++) {
                messages[i] = fake_message(NULL, 0, "h", i);
                tr_list_append(&list, &messages[i]->link);
        }
        ck_assert_int_eq(tr_mailbox_post(&mailbox, &list), TR_POST_FULL);
        ck_assert_ptr_eq(tr_list_first(&list, struct tr_message, link), messages[4]);
        ck_assert_ptr_eq(tr_list_last(&list, struct tr_message, link), messages[5]);
        ck_assert_uint_eq(take(&mailbox, false, NULL), 4);
        for (int i = 0; i < 4; i++)
                ck_assert_ptr_eq(taken[i], messages[i]);
        tr_message_unref(messages[4]);
        tr_message_unref(messages[5]);
}
END_TEST

START_TEST(closed_takes_nothing_but_keeps_what_it_has) {
        ck_assert_int_eq(post(fake_message(NULL, 0, "h", 0)), TR_POST_OK);
        tr_mailbox_close(&mailbox);
        ck_assert_int_eq(post(fake_message(NULL, 0, "h", 1)), TR_POST_CLOSED);
        ck_assert_uint_eq(take(&mailbox, false, NULL), 1);
}
END_TEST

START_TEST(answers_come_beside_the_bounds) {
        for (int i = 0; i < 4; i++)
                ck_assert_int_eq(post(fake_message(NULL, 0, "h", i)), TR_POST_OK);
        for (uint64_t i = 0; i < 100; i++)
                tr_mailbox_post_answer(&mailbox, tr_answer_new(i, "x", 1));
        ck_assert_uint_eq(take(&mailbox, true, NULL), 0);
        uint64_t expected = 0;
        struct tr_answer *answer;
        tr_list_for_each(answer, &answers, link) {
                ck_assert_uint_eq(answer->id, expected++);
                tr_list_unlink(&answer->link);
                tr_answer_free(answer);
        }
        ck_assert_uint_eq(expected, 100);
}
END_TEST

START_TEST(an_answer_after_the_end_is_dropped) {
        struct tr_list queue = TR_LIST_INIT(queue), in_hand = TR_LIST_INIT(in_hand);
        tr_mailbox_close_and_take(&mailbox, &queue, &in_hand, &answers);
        tr_mailbox_post_answer(&mailbox, tr_answer_new(1, "x", 1));
        ck_assert(tr_list_is_empty(&answers));
}
END_TEST

START_TEST(a_batch_has_a_bound) {
        struct tr_mailbox large;
        tr_mailbox_init(&large, 1000, 1000000);
        for (int i = 0; i < 300; i++) {
                struct tr_list list = TR_LIST_INIT(list);
                tr_list_append(&list, &fake_message(NULL, 0, "h", i)->link);
                ck_assert_int_eq(tr_mailbox_post(&large, &list), TR_POST_OK);
        }
        ck_assert_uint_eq(take(&large, false, NULL), TR_MAILBOX_BATCH);
        struct tr_message *finished = NULL;
        for (int i = 0; i < TR_MAILBOX_BATCH; i++) {
                ck_assert(tr_mailbox_begin(&large, taken[i]));
                taken[i]->next_in_hand = finished;
                finished = taken[i];
        }
        ck_assert_uint_eq(take(&large, false, finished), 300 - TR_MAILBOX_BATCH);
        for (uint32_t i = 0; i < 300 - TR_MAILBOX_BATCH; i++)
                ck_assert(tr_mailbox_begin(&large, taken[i]));
        ck_assert_uint_eq(atomic_load(&large.messages), 0);
        ck_assert_uint_eq(atomic_load(&large.bytes), 0);

        struct tr_list queue = TR_LIST_INIT(queue), in_hand = TR_LIST_INIT(in_hand);
        tr_mailbox_close_and_take(&large, &queue, &in_hand, &answers);
        ck_assert(tr_list_is_empty(&queue));
        struct tr_message *message;
        tr_list_for_each(message, &in_hand, link) {
                tr_list_unlink(&message->link);
                tr_message_unref(message);
        }
        tr_mailbox_deinit(&large);
}
END_TEST

static void *wait_for_one(void *userdata) {
        tr_mailbox_wait(&mailbox, false, TR_NEVER);
        return NULL;
}

START_TEST(a_message_an_answer_and_a_call_each_wake_the_receiver) {
        for (int what = 0; what < 3; what++) {
                pthread_t thread;
                ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_one, NULL), 0);
                if (what == 0)
                        ck_assert_int_eq(post(fake_message(NULL, 0, "h", 0)), TR_POST_OK);
                else if (what == 1)
                        tr_mailbox_post_answer(&mailbox, tr_answer_new(1, "x", 1));
                else
                        tr_mailbox_call_attention(&mailbox);
                ck_assert_int_eq(pthread_join(thread, NULL), 0);
                take(&mailbox, false, NULL);
                struct tr_answer *answer;
                tr_list_for_each(answer, &answers, link) {
                        tr_list_unlink(&answer->link);
                        tr_answer_free(answer);
                }
        }
        /* With nothing to come, a deadline that has passed ends the wait. */
        tr_mailbox_wait(&mailbox, false, tr_clock_ns());
}
END_TEST

START_TEST(a_message_settles_once) {
        struct fake_asker asker;
        fake_asker_init(&asker);
        struct tr_message *message = fake_message(&asker, 7, "h", 0);
        struct tr_failure *failure = tr_failure_new(TR_CODE_CANCELLED, "taken back");
        ck_assert(tr_message_begin(message));
        ck_assert(!tr_message_begin(message));
        ck_assert(tr_message_reject(message, failure, TR_RAN_MAYBE));
        ck_assert(!tr_message_reject(message, failure, TR_RAN_MAYBE));
        ck_assert(!tr_message_resolve(message, "x", 1, false));
        ck_assert_uint_eq(asker.count, 1);
        ck_assert_int_eq(asker.outcomes[0].ran, TR_RAN_MAYBE);
        tr_message_unref(message);

        message = fake_message(&asker, 8, "h", 0);
        ck_assert(tr_message_reject(message, failure, TR_RAN_MAYBE));
        ck_assert(!tr_message_begin(message)); /* what was taken back while queued never runs */
        ck_assert_int_eq(asker.outcomes[1].ran, TR_RAN_NO);
        tr_message_unref(message);
        tr_failure_unref(failure);
        fake_asker_deinit(&asker);
}
END_TEST

suite_main_with("core/mailbox", setup, teardown, full_by_count_and_gives_way_again, full_by_bytes, a_list_is_taken_in_order_up_to_the_first_refusal, closed_takes_nothing_but_keeps_what_it_has, answers_come_beside_the_bounds, an_answer_after_the_end_is_dropped, a_batch_has_a_bound, a_message_an_answer_and_a_call_each_wake_the_receiver, a_message_settles_once);
