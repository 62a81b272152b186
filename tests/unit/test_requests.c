/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: what a client hears, whatever it asks. */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "tests/unit/io_fixture.h"
#include "tests/unit/suite.h"

static struct io_fixture fixture;
static struct io_client client;

static void begin_with(const struct tr_server_limits *limits) {
        io_begin(&fixture, &client, limits);
}

static void begin(void) {
        begin_with(NULL);
}

static void end(void) {
        io_end(&fixture, &client);
}

START_TEST(answers_what_the_loop_knows) {
        begin();
        io_client_say(&client, "[0,0,'ping',[]][0,4294967295,#70696e67,[]]");
        io_client_expect(&client, "[1,0,nil,'pong']");
        io_client_expect(&client, "[1,4294967295,nil,'pong']");
        io_client_say(&client, "[0,1,'find',['nobody']]");
        io_client_expect(&client, "[1,1,nil,nil]");
        io_client_say(&client, "[2,'ping',[]][2,'nonsense',[]][1,7,nil,nil][0,2,'ping',[]]");
        io_client_expect(&client, "[1,2,nil,'pong']");
        end();
}
END_TEST

START_TEST(says_what_is_wrong_with_a_request) {
        static const char *const cases[][2] = {
                { "'nonsense',[]", "[1,'unknown-method: there is no method nonsense (ran: no)']" },
                { "7,[]", "[1,'bad-request: the method has to be a string (ran: no)']" },
                { "'ping',7", "[1,'bad-request: params have to be an array (ran: no)']" },
                { "'ping',[1]", "[1,'bad-request: ping takes 0 params: none (ran: no)']" },
                { "'find',[7]", "[1,'bad-request: find: param 1 has to be a string (find name) (ran: no)']" },
                { "'find',['a/b']", "[1,'bad-request: find: param 1 has to be a name (find name) (ran: no)']" },
                { "'send',['nobody','h',[]]", "[1,'not-found: nothing is published under the name nobody (ran: no)']" },
                { "'send',['actor:00000000000000000000000000000000','h',[]]",
                  "[0,'not-running: the actor is not running (ran: no)']" },
                { "'done',['nobody',{'when':1}]", "[1,'bad-request: done: unknown option: when (ran: no)']" },
                { "'done',['nobody',{'timeout':0}]",
                  "[1,'bad-request: done: the option timeout has to be a time above 0 "
                  "(milliseconds, or text with ms, s, m, h or d) (ran: no)']" },
                { "'hello',[{'protocol':2}]", "[1,'bad-request: protocol 2 is not known here (ran: no)']" },
                { "'hello',[{'errors':'loud'}]",
                  "[1,'bad-request: hello: the option errors has to be pair, map or text (ran: no)']" },
                { "'cancel',[-1]",
                  "[1,'bad-request: cancel: param 1 has to be the id of a request (cancel msgid) (ran: no)']" },
                { "'spawn',['a/b',[]]",
                  "[1,'bad-request: spawn: param 1 has to be an actor: \"module\" or \"module:Name\" "
                  "(spawn actor, args, {heap?, mailbox?, mailbox_bytes?, async?, name?, detach?, "
                  "publish?, if_absent?}?) (ran: no)']" },
                { "'ping',[nil,!9#00]",
                  "[1,'not-sendable: extension type 9 is not known here: `params[2]` is of that type "
                  "(ran: no)']" },
        };
        begin();
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                char wanted[512];
                snprintf(wanted, sizeof(wanted), "[1,%zu,%s,nil]", i, cases[i][1]);
                io_client_say(&client, "[0,%zu,%s]", i, cases[i][0]);
                io_client_expect(&client, wanted);
        }
        end();
}
END_TEST

START_TEST(errors_have_three_forms) {
        begin();
        io_client_say(&client, "[0,1,'hello',[{'errors':'map'}]]");
        io_client_hear(&client);
        io_client_say(&client, "[0,2,'nonsense',[]]");
        io_client_expect(&client,
                         "[1,2,{'code':'unknown-method','message':'there is no method nonsense','ran':'no'},nil]");
        io_client_say(&client, "[0,3,'hello',[{'protocol':9}]]");
        io_client_expect(&client, "[1,3,{'code':'bad-request','message':'protocol 9 is not known here','ran':'no',"
                                  "'supported':[1]},nil]");
        io_client_say(&client, "[0,4,'hello',[{'errors':'text'}]][0,5,'nonsense',[]]");
        io_client_hear(&client);
        io_client_expect(&client, "[1,5,'unknown-method: there is no method nonsense (ran: no)',nil]");
        io_client_say(&client, "[0,6,'hello',[{'errors':'pair'}]][0,7,'nonsense',[]]");
        io_client_hear(&client);
        io_client_expect(&client, "[1,7,[1,'unknown-method: there is no method nonsense (ran: no)'],nil]");
        end();
}
END_TEST

START_TEST(the_form_is_that_of_the_time_of_asking) {
        begin();
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_say(&client, "[0,1,'ask',['%s','hold',[]]][0,2,'ask',['%s','echo',[2]]]", handle, handle);
        io_client_expect(&client, "[1,2,nil,2]");
        io_client_say(&client, "[0,3,'hello',[{'errors':'map'}]][2,'stop',['%s',{'kill':true}]]", handle);
        ck_assert_ptr_nonnull(strstr(io_client_hear(&client), "'server':'trouped'"));
        io_client_expect(&client, "[1,1,[0,'killed: the actor was killed (ran: maybe)'],nil]");
        end();
}
END_TEST

START_TEST(asks_and_sends_are_answered_in_order) {
        begin();
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        for (int i = 0; i < 300; i++)
                io_client_say(&client, "[2,'send',['%s','count',[]]][0,%d,'ask',['%s','count',[]]]", handle, i, handle);
        for (int i = 0; i < 300; i++) {
                char wanted[64];
                snprintf(wanted, sizeof(wanted), "[1,%d,nil,%d]", i, 2 * i + 2);
                io_client_expect(&client, wanted);
        }
        io_client_say(&client, "[0,1,'send',['%s','count',[]]][0,2,'ask',['%s','echo',['x']]]", handle, handle);
        io_client_expect_both(&client, "[1,1,nil,nil]", "[1,2,nil,'x']");
        end();
}
END_TEST

START_TEST(an_id_names_one_request_at_a_time) {
        begin();
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_say(&client, "[0,1,'ask',['%s','hold',[]]][0,1,'ask',['%s','echo',[5]]]", handle, handle);
        io_client_expect(&client, "[1,1,[1,'bad-request: a request with the id 1 is unanswered (ran: no)'],nil]");
        io_client_say(&client, "[0,1,'ping',[]]");
        io_client_expect(&client, "[1,1,[1,'bad-request: a request with the id 1 is unanswered (ran: no)'],nil]");
        io_client_say(&client, "[0,2,'ask',['%s','release',[]]]", handle);
        io_client_expect(&client, "[1,1,nil,nil]");
        io_client_expect(&client, "[1,2,nil,nil]");
        io_client_say(&client, "[0,1,'ping',[]]");
        io_client_expect(&client, "[1,1,nil,'pong']");
        end();
}
END_TEST

START_TEST(what_is_queued_can_be_taken_back) {
        begin();
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_say(&client, "[0,1,'ask',['%s','block',[]]]", handle);
        sem_wait(&fixture.shared.entered);
        io_client_say(&client, "[0,2,'ask',['%s','count',[]]][0,3,'cancel',[2]][0,4,'cancel',[2]][0,5,'cancel',[1]]",
                      handle);
        io_client_expect(&client, "[1,2,[0,'cancelled: the caller took the request back (ran: no)'],nil]");
        io_client_expect(&client, "[1,3,nil,true]");
        io_client_expect(&client, "[1,4,nil,false]");
        io_client_expect(&client, "[1,1,[0,'cancelled: the caller took the request back (ran: maybe)'],nil]");
        io_client_expect(&client, "[1,5,nil,true]");
        sem_post(&fixture.shared.go);
        io_client_say(&client, "[0,6,'ask',['%s','count',[]]]", handle);
        io_client_expect(&client, "[1,6,nil,1]");
        end();
}
END_TEST

START_TEST(deadlines_pass) {
        begin();
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_say(&client,
                      "[0,1,'ask',['%s','hold',[],{'timeout':30}]][0,2,'ask',['%s','hold',[],{'timeout':'10ms'}]]",
                      handle, handle);
        ck_assert_ptr_nonnull(
                strstr(io_client_hear(&client), "[1,2,[0,'timeout: the deadline passed before it was answered"));
        ck_assert_ptr_nonnull(
                strstr(io_client_hear(&client), "[1,1,[0,'timeout: the deadline passed before it was answered"));
        io_client_say(&client, "[0,1,'hello',[{'timeout':5.0}]]");
        io_client_hear(&client);
        io_client_say(&client, "[0,3,'done',['%s']]", handle);
        io_client_expect(&client, "[1,3,[0,'timeout: the deadline passed before it was answered (ran: no)'],nil]");
        io_client_say(&client, "[0,4,'ask',['%s','echo',[1],{'timeout':60000}]]", handle);
        io_client_expect(&client, "[1,4,nil,1]");
        end();
}
END_TEST

START_TEST(a_spawn_given_up_is_killed) {
        begin();
        io_client_say(&client, "[0,1,'spawn',['slow-init',[],{'publish':'slow'}]][0,2,'find',['slow']]");
        ck_assert_ptr_nonnull(strstr(io_client_hear(&client), "[1,2,nil,'actor:"));
        io_client_say(&client, "[0,3,'done',['slow']][2,'cancel',[1]]");
        /* Whether its constructor has been entered by then is the scheduler's affair. */
        ck_assert_ptr_nonnull(
                strstr(io_client_hear(&client), "[1,1,[0,'cancelled: the caller took the request back (ran: "));
        io_client_expect(&client, "[1,3,[0,'killed: the actor was killed (ran: maybe)'],nil]");
        end();
}
END_TEST

START_TEST(what_does_not_start_says_why) {
        begin();
        io_client_say(&client, "[0,1,'spawn',['broken',[]]]");
        io_client_expect(&client, "[1,1,[0,'load: it does not load (ran: no)'],nil]");
        io_client_say(&client, "[0,2,'spawn',['bad-init',[]]]");
        io_client_expect(&client, "[1,2,[0,'fault: bad init (ran: yes)'],nil]");
        io_client_say(&client, "[0,3,'spawn',['worker',[],{'if_absent':true}]]");
        io_client_expect(&client, "[1,3,[1,'bad-request: spawn: the option if_absent needs publish (ran: no)'],nil]");
        io_client_say(&client, "[0,4,'spawn',['worker',[],{'publish':'w'}]]");
        char first[128], again[128];
        strcpy(first, io_client_hear(&client) + strlen("[1,4"));
        io_client_say(&client, "[0,5,'spawn',['worker',[],{'publish':'w'}]]");
        io_client_expect(&client, "[1,5,[0,'taken: the name w is published already (ran: no)'],nil]");
        io_client_say(&client, "[0,6,'spawn',['worker',[],{'publish':'w','if_absent':true}]]");
        strcpy(again, io_client_hear(&client) + strlen("[1,6"));
        ck_assert_str_eq(first, again);
        end();
}
END_TEST

START_TEST(names_come_and_go) {
        begin();
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_say(&client,
                      "[0,1,'publish',['shop','%s']][0,2,'publish',['shop','%s']][0,3,'ask',['shop','echo',[1]]]",
                      handle, handle);
        io_client_expect(&client, "[1,1,nil,nil]");
        io_client_expect(&client, "[1,2,[0,'taken: the name shop is published already (ran: no)'],nil]");
        io_client_expect(&client, "[1,3,nil,1]");
        io_client_say(&client, "[0,4,'unpublish',['shop']][0,5,'unpublish',['shop']][0,6,'find',['shop']]");
        io_client_expect(&client, "[1,4,nil,nil]");
        io_client_expect(&client, "[1,5,[1,'not-found: nothing is published under the name shop (ran: no)'],nil]");
        io_client_expect(&client, "[1,6,nil,nil]");
        end();
}
END_TEST

START_TEST(too_many_requests_are_busy) {
        struct tr_server_limits limits = io_fixture_limits();
        limits.requests = 2;
        begin_with(&limits);
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        for (int i = 1; i <= 3; i++)
                io_client_say(&client, "[0,%d,'ask',['%s','hold',[]]]", i, handle);
        io_client_expect(
                &client,
                "[1,3,[0,'busy: 2 requests are unanswered, and limits.requests allows no more (ran: no)'],nil]");
        io_client_say(&client, "[2,'send',['%s','release',[]]]", handle);
        io_client_expect(&client, "[1,1,nil,nil]");
        io_client_expect(&client, "[1,2,nil,nil]");
        io_client_say(&client, "[0,4,'ask',['%s','echo',[4]]]", handle);
        io_client_expect(&client, "[1,4,nil,4]");
        end();
}
END_TEST

START_TEST(a_full_mailbox_refuses_and_gives_way) {
        begin();
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_say(&client, "[0,1,'ask',['%s','block',[]]]", handle);
        sem_wait(&fixture.shared.entered);
        for (int i = 0; i < 1000; i++)
                io_client_say(&client, "[2,'send',['%s','count',[]]]", handle);
        io_client_say(&client, "[0,2,'send',['%s','count',[]]][0,3,'ask',['%s','count',[]]]", handle, handle);
        io_client_expect(&client, "[1,2,[0,'mailbox-full: the mailbox is full (ran: no)'],nil]");
        io_client_expect(&client, "[1,3,[0,'mailbox-full: the mailbox is full (ran: no)'],nil]");
        sem_post(&fixture.shared.go);
        io_client_expect(&client, "[1,1,nil,nil]");
        while (strcmp(io_client_hear((io_client_say(&client, "[0,4,'send',['%s','nothing',[]]]", handle), &client)),
                      "[1,4,nil,nil]") != 0)
                ck_assert_str_eq(client.text, "[1,4,[0,'mailbox-full: the mailbox is full (ran: no)'],nil]");
        io_client_say(&client, "[0,5,'ask',['%s','count',[]]]", handle);
        io_client_expect(&client, "[1,5,nil,1001]");
        end();
}
END_TEST

START_TEST(a_message_too_large_for_the_mailbox_leaves_the_others) {
        begin();
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        static char large[(1 << 20) + 1];
        memset(large, 'x', sizeof(large) - 1);
        io_client_say(&client,
                      "[0,1,'ask',['%s','echo',[1]]][0,2,'ask',['%s','echo',['%s']]][0,3,'ask',['%s','echo',[3]]]",
                      handle, handle, large, handle);
        bool heard[4] = { 0 };
        for (int i = 0; i < 3; i++) {
                int id;
                ck_assert_int_eq(sscanf(io_client_hear(&client), "[1,%d,", &id), 1);
                heard[id] = true;
                if (id == 2)
                        ck_assert_ptr_nonnull(strstr(client.text, "too-large: "));
        }
        ck_assert(heard[1] && heard[2] && heard[3]);
        end();
}
END_TEST

START_TEST(an_answer_waits_for_no_long_handler) {
        begin();
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        /* While the actor is blocked all three are queued, and its next turn takes them together. */
        io_client_say(&client, "[0,1,'ask',['%s','block',[]]]", handle);
        sem_wait(&fixture.shared.entered);
        io_client_say(&client, "[0,2,'ask',['%s','echo',[2]]][0,3,'ask',['%s','block',[]]]", handle, handle);
        io_client_say(&client, "[0,4,'ping',[]]");
        io_client_expect(&client, "[1,4,nil,'pong']");
        sem_post(&fixture.shared.go);
        sem_wait(&fixture.shared.entered);
        io_client_expect(&client, "[1,1,nil,nil]");
        io_client_expect(&client, "[1,2,nil,2]"); /* though 3 has not returned */
        sem_post(&fixture.shared.go);
        io_client_expect(&client, "[1,3,nil,nil]");
        end();
}
END_TEST

START_TEST(shutdown_is_told) {
        begin();
        io_client_say(&client, "[0,1,'shutdown',[]]");
        io_client_expect(&client, "[1,1,nil,nil]");
        ck_assert_int_eq(atomic_load(&fixture.shutdowns), 1);
        end();
}
END_TEST

START_TEST(refused_notifications_are_counted) {
        begin();
        io_client_say(&client, "[2,'send',['nobody','h',[]]][2,'send',['nobody','h']][0,1,'ping',[]]");
        io_client_expect(&client, "[1,1,nil,'pong']");
        ck_assert_int_eq(atomic_load(&fixture.refused), 2);
        end();
}
END_TEST

suite_main("requests", answers_what_the_loop_knows, says_what_is_wrong_with_a_request, errors_have_three_forms,
           the_form_is_that_of_the_time_of_asking, asks_and_sends_are_answered_in_order,
           an_id_names_one_request_at_a_time, what_is_queued_can_be_taken_back, deadlines_pass,
           a_spawn_given_up_is_killed, what_does_not_start_says_why, names_come_and_go, too_many_requests_are_busy,
           a_full_mailbox_refuses_and_gives_way, a_message_too_large_for_the_mailbox_leaves_the_others,
           an_answer_waits_for_no_long_handler, shutdown_is_told, refused_notifications_are_counted);
