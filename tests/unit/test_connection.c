/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: what a client hears, whatever it says, and that it hurts nobody but itself. */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "tests/unit/io_fixture.h"
#include "tests/unit/suite.h"

static struct io_fixture fixture;
static struct io_client client;

static void begin_with(const struct tr_server_limits *limits) {
        io_fixture_init(&fixture, limits);
        io_client_init(&client, &fixture);
}

static void begin(void) {
        struct tr_server_limits limits = io_fixture_limits();
        begin_with(&limits);
}

static void end(void) {
        io_client_deinit(&client);
        io_fixture_deinit(&fixture);
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

START_TEST(a_session_ends_with_its_connection) {
        begin();
        struct io_client other;
        char attached[64], detached[64];
        io_client_init(&other, &fixture);
        strcpy(attached, io_client_spawn(&other, "worker"));
        strcpy(detached, io_client_spawn(&other, "worker"));
        io_client_say(&other, "[0,1,'detach',['%s']]", detached);
        io_client_expect(&other, "[1,1,nil,nil]");
        io_client_say(&client, "[0,1,'done',['%s']][0,3,'ping',[]]", attached);
        io_client_expect(&client, "[1,3,nil,'pong']");
        io_client_deinit(&other);
        io_client_expect(&client, "[1,1,nil,nil]");
        io_client_say(&client, "[0,4,'ask',['%s','echo',[1]]]", detached);
        io_client_expect(&client, "[1,4,nil,1]");
        io_client_say(&client, "[0,5,'stop',['%s']]", detached);
        io_client_expect(&client, "[1,5,nil,nil]");
        io_client_say(&client, "[0,2,'done',['%s']]", detached);
        io_client_expect(&client, "[1,2,nil,nil]");
        end();
}
END_TEST

START_TEST(a_half_closed_peer_is_answered) {
        begin();
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_say(&client, "[0,1,'ask',['%s','block',[]]][0,2,'ask',['%s','echo',[2]]]", handle, handle);
        io_client_send(&client, "\x94\x00\x03", 3);
        shutdown(client.fd, SHUT_WR);
        sem_wait(&fixture.shared.entered);
        sem_post(&fixture.shared.go);
        io_client_expect(&client, "[1,1,nil,nil]");
        io_client_expect(&client, "[1,2,nil,2]");
        io_client_expect(&client, "end");
        end();
}
END_TEST

START_TEST(a_peer_that_goes_while_it_is_owed_an_answer_is_let_go) {
        begin();
        struct io_client other;
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_init(&other, &fixture);
        io_client_say(&other, "[0,1,'spawn',['worker',[],{'publish':'others'}]]");
        io_client_hear(&other);
        io_client_say(&client, "[0,1,'done',['others']][0,2,'ask',['%s','block',[]]]", handle);
        sem_wait(&fixture.shared.entered);
        io_client_say(&other, "[0,2,'ask',['%s','count',[]]][2,'send',['%s','count',[]]]", handle, handle);
        shutdown(other.fd, SHUT_WR);
        io_client_deinit(&other); /* its ask is queued for ever: only the end of the peer can end the connection */
        io_client_expect(&client, "[1,1,nil,nil]");
        sem_post(&fixture.shared.go);
        io_client_expect(&client, "[1,2,nil,nil]");
        io_client_say(&client, "[0,3,'ask',['%s','count',[]]]", handle);
        io_client_expect(&client, "[1,3,nil,2]"); /* its send was served, its ask was not */
        end();
}
END_TEST

START_TEST(garbage_ends_the_connection_after_what_came_before) {
        begin();
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_say(&client, "[0,1,'ask',['%s','echo',[1]]][0,2,'ping']", handle);
        io_client_expect_both(&client, "[1,2,[0,'bad-frame: this is not a frame of MessagePack-RPC (ran: no)'],nil]",
                              "[1,1,nil,1]");
        io_client_expect(&client, "end");
        end();
}
END_TEST

START_TEST(a_refused_frame_is_passed_over) {
        struct tr_server_limits limits = io_fixture_limits();
        limits.frame_bytes = 1024;
        begin_with(&limits);
        char text[4096];
        memset(text, 'x', 2000);
        text[2000] = '\0';
        io_client_say(&client, "[0,1,'send',['a','b',['%s']]][0,2,'ping',[]]", text);
        io_client_expect(
                &client,
                "[1,1,[1,'too-large: the frame is larger than limits.frame allows (1024 bytes) (ran: no)'],nil]");
        io_client_expect(&client, "[1,2,nil,'pong']");
        io_client_say(&client,
                      "[0,3,'hello',[{'errors':'map'}]][0,4,'send',['a','b',[1,[{'k':18446744073709551615}]]]]");
        io_client_hear(&client);
        io_client_expect(&client,
                         "[1,4,{'code':'not-sendable','message':'a message may not carry an integer above 2^63-1: "
                         "`args[2][1].k` is one','ran':'no','path':'args[2][1].k'},nil]");
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

/* Has the server write more than a socket holds, and more than a connection may leave unread and be read from. */
#define FLOOD 40
static void flood(struct io_client *who, const char *handle) {
        for (int i = 0; i < FLOOD; i++)
                io_client_say(who, "[0,%d,'ask',['%s','large',[]]]", i, handle);
}

START_TEST(who_does_not_read_is_not_read_from_and_loses_nothing) {
        begin();
        struct io_client other;
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_init(&other, &fixture);
        flood(&other, handle);
        io_client_say(&client, "[0,1,'ask',['%s','echo',[1]]]", handle);
        io_client_expect(&client, "[1,1,nil,1]");
        for (int i = 0; i < FLOOD; i++)
                ck_assert_int_eq(io_client_hear_id(&other), i);
        io_client_say(&other, "[0,1,'ping',[]]");
        io_client_expect(&other, "[1,1,nil,'pong']");
        io_client_deinit(&other);
        end();
}
END_TEST

START_TEST(a_piece_of_requests_with_large_answers_is_served_as_they_are_read) {
        enum {
                ACTORS = 30,
                REQUESTS = 2000
        };
        struct tr_server_limits limits = io_fixture_limits();
        limits.output_bytes = 1 << 20; /* much less than all answers together */
        begin_with(&limits);
        for (int i = 0; i < ACTORS; i++)
                io_client_spawn(&client, "worker");
        struct tr_writer writer = TR_WRITER_INIT;
        for (uint32_t i = 0; i < REQUESTS; i++) {
                tr_write_array(&writer, 4);
                tr_write_int(&writer, 0);
                tr_write_uint(&writer, i);
                tr_write_text(&writer, "list");
                tr_write_array(&writer, 0);
        }
        io_client_send(&client, writer.data, writer.len);
        tr_writer_deinit(&writer);
        for (int i = 0; i < REQUESTS; i++)
                ck_assert_int_eq(io_client_hear_id(&client), i);
        io_client_say(&client, "[0,1,'ping',[]]");
        io_client_expect(&client, "[1,1,nil,'pong']");
        end();
}
END_TEST

START_TEST(who_never_reads_is_closed) {
        struct tr_server_limits limits = io_fixture_limits();
        limits.stalled_ns = 50 * TR_NS_PER_MS;
        begin_with(&limits);
        struct io_client other;
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_init(&other, &fixture);
        io_client_say(&other, "[0,99,'spawn',['worker',[],{'publish':'theirs'}]]");
        io_client_hear(&other);
        io_client_say(&client, "[0,1,'done',['theirs']]");
        flood(&other, handle);
        io_client_expect(&client, "[1,1,nil,nil]"); /* its session has ended */
        io_client_deinit(&other);
        end();
}
END_TEST

START_TEST(more_output_than_allowed_is_the_end) {
        struct tr_server_limits limits = io_fixture_limits();
        limits.output_bytes = 512 << 10;
        begin_with(&limits);
        struct io_client other;
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_init(&other, &fixture);
        io_client_say(&other, "[0,99,'spawn',['worker',[],{'publish':'theirs'}]]");
        io_client_hear(&other);
        io_client_say(&client, "[0,1,'done',['theirs']]");
        flood(&other, handle);
        io_client_expect(&client, "[1,1,nil,nil]");
        io_client_deinit(&other);
        end();
}
END_TEST

START_TEST(one_connection_too_many_is_told) {
        struct tr_server_limits limits = io_fixture_limits();
        limits.connections = 2;
        begin_with(&limits);
        struct io_client second, third;
        io_client_init(&second, &fixture);
        io_client_init(&third, &fixture);
        io_client_say(&third, "[0,1,'ping',[]][0,2,'ping',[]]");
        io_client_expect(&third, "[1,1,[0,'limit: too many connections, in all or of this user (ran: no)'],nil]");
        io_client_expect(&third, "end");
        io_client_deinit(&third);
        io_client_say(&client, "[0,1,'ping',[]]");
        io_client_expect(&client, "[1,1,nil,'pong']");
        io_client_deinit(&second);
        end();
}
END_TEST

START_TEST(a_frame_may_come_in_any_pieces) {
        begin();
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        static char text[600001];
        memset(text, 'x', sizeof(text) - 1);
        struct tr_writer writer = TR_WRITER_INIT;
        tr_write_array(&writer, 4);
        tr_write_int(&writer, 0);
        tr_write_int(&writer, 1);
        tr_write_text(&writer, "ask");
        tr_write_array(&writer, 3);
        tr_write_text(&writer, handle);
        tr_write_text(&writer, "echo");
        tr_write_array(&writer, 1);
        tr_write_text(&writer, text);
        size_t steps[] = { 1, 7, 1000, 20000, 100000, 1000000 };
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
                /* Small steps for the beginning only: its end, and what is behind it, are in one piece. */
                size_t at = 0;
                for (unsigned int step = 0; step < 64 && at + steps[i] < writer.len; step++, at += steps[i])
                        io_client_send(&client, writer.data + at, steps[i]);
                io_client_send(&client, writer.data + at, writer.len - at);
                io_client_say(&client, "[0,2,'ping',[]]");
                ck_assert_int_eq(io_client_hear_id(&client) + io_client_hear_id(&client), 3);
        }
        tr_writer_deinit(&writer);
        end();
}
END_TEST

/* Asks the counting handler, and wants that it has counted every ask so far. */
static void count_one(const char *handle, int nth) {
        char wanted[64];
        io_client_say(&client, "[0,%d,'ask',['%s','count',[]]]", nth, handle);
        snprintf(wanted, sizeof(wanted), "[1,%d,nil,%d]", nth, nth);
        io_client_expect(&client, wanted);
}

START_TEST(who_asks_one_at_a_time_is_heard_once) {
        begin();
        char handle[64], wanted[64];
        int nth = 1;
        strcpy(handle, io_client_spawn(&client, "worker"));
        for (; nth <= 20; nth++)
                count_one(handle, nth);
        /* More than was to be expected: two at once, */
        io_client_say(&client, "[0,%d,'ask',['%s','count',[]]][0,%d,'ask',['%s','count',[]]]", nth, handle, nth + 1,
                      handle);
        for (int i = 0; i < 2; i++, nth++) {
                snprintf(wanted, sizeof(wanted), "[1,%d,nil,%d]", nth, nth);
                io_client_expect(&client, wanted);
        }
        count_one(handle, nth++);
        count_one(handle, nth++);
        /* one, and the beginning of another; 0x94 is an array of four, and the rest of it comes once the first is answered, */
        io_client_say(&client, "[0,%d,'ask',['%s','count',[]]]", nth, handle);
        io_client_send(&client, "\x94", 1);
        snprintf(wanted, sizeof(wanted), "[1,%d,nil,%d]", nth, nth);
        io_client_expect(&client, wanted);
        nth++;
        io_client_send(&client, "\x00\x7f\xa4ping\x90", 8);
        io_client_expect(&client, "[1,127,nil,'pong']");
        count_one(handle, nth++);
        count_one(handle, nth++);
        /* and what is no frame. */
        io_client_say(&client, "[0,%d,'ask',['%s','count',[]]]7", nth, handle);
        snprintf(wanted, sizeof(wanted), "[1,%d,nil,%d]", nth, nth);
        io_client_expect(&client, wanted);
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

suite_main("connection", answers_what_the_loop_knows, says_what_is_wrong_with_a_request, errors_have_three_forms,
           the_form_is_that_of_the_time_of_asking, asks_and_sends_are_answered_in_order,
           an_id_names_one_request_at_a_time, what_is_queued_can_be_taken_back, deadlines_pass,
           a_spawn_given_up_is_killed, what_does_not_start_says_why, names_come_and_go,
           a_session_ends_with_its_connection, a_half_closed_peer_is_answered,
           a_peer_that_goes_while_it_is_owed_an_answer_is_let_go, garbage_ends_the_connection_after_what_came_before,
           a_refused_frame_is_passed_over, too_many_requests_are_busy, a_full_mailbox_refuses_and_gives_way,
           a_message_too_large_for_the_mailbox_leaves_the_others, an_answer_waits_for_no_long_handler,
           who_does_not_read_is_not_read_from_and_loses_nothing,
           a_piece_of_requests_with_large_answers_is_served_as_they_are_read, who_never_reads_is_closed,
           more_output_than_allowed_is_the_end, one_connection_too_many_is_told, a_frame_may_come_in_any_pieces,
           who_asks_one_at_a_time_is_heard_once, shutdown_is_told, refused_notifications_are_counted);
