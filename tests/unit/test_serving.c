/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that serve components, and those that call them: frame by frame. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/core/component.h"
#include "daemon/core/replica.h"
#include "daemon/core/system.h"
#include "daemon/io/connection.h"
#include "daemon/io/server_internal.h"
#include "tests/unit/io_fixture.h"
#include "tests/unit/suite.h"

#define SHOP "{\"name\": \"shop\", \"operations\": {\"sell\": {\"errors\": [\"SOLD_OUT\"]}, \"count\": {}, \"watch\": {\"stateful\": true}}}"
#define MILL "{\"name\": \"mill\", \"concurrency\": 2, \"operations\": {\"grind\": {}}}"

static struct io_fixture fixture;
static struct io_client client, worker;

static void declare_both(void) {
        io_fixture_declare(&fixture, SHOP);
        io_fixture_declare(&fixture, MILL);
}

static void begin_with(const struct tr_server_limits *limits) {
        io_begin(&fixture, &client, limits);
        io_client_init(&worker, &fixture);
        declare_both();
}

static void begin(void) {
        begin_with(NULL);
}

static void end(void) {
        io_client_deinit(&worker);
        io_end(&fixture, &client);
}

static void serve(struct io_client *server, const char *component, const char *options) {
        io_client_say(server, "[0,4000000001,'serve',['%s',%s]]", component, options);
        ck_assert_msg(strncmp(io_client_hear(server), "[1,4000000001,nil,{'instance':'", 31) == 0, "%s", server->text);
}

/* Hears a call; answers its id. `wanted` is what stands between the id and the context. */
static uint32_t hear_call(struct io_client *server, const char *wanted) {
        uint32_t id;
        int at = 0;
        ck_assert_msg(sscanf(io_client_hear(server), "[0,%" SCNu32 ",%n", &id, &at) == 1 && at > 0, "%s", server->text);
        ck_assert_msg(strncmp(server->text + at, wanted, strlen(wanted)) == 0, "%s", server->text);
        return id;
}

static void expect_start(struct io_client *of, const char *wanted) {
        ck_assert_msg(strncmp(io_client_hear(of), wanted, strlen(wanted)) == 0, "%s", of->text);
}

START_TEST(a_call_goes_to_who_serves_and_its_answer_back) {
        begin();
        serve(&worker, "shop", "{'instance':'till','concurrency':2}");
        io_client_say(&client, "[0,7,'instances',['shop']][0,8,'instances',['mill']]");
        io_client_expect(&client, "[1,7,nil,['till']]");
        io_client_expect(&client, "[1,8,nil,[]]");
        io_client_say(&client, "[0,1,'call',['shop','sell',{'what':'tea'}]][0,2,'call',['shop','count',nil,{'timeout':60000}]]");
        uint32_t one = hear_call(&worker, "'call',['sell',{'what':'tea'},{'component':'shop','instance':'till',");
        ck_assert_ptr_nonnull(strstr(worker.text, "'attempt':1,'caller':{'uid':"));
        ck_assert_ptr_nonnull(strstr(worker.text, "'trace':'00-"));
        ck_assert_ptr_null(strstr(worker.text, "'timeout'"));
        uint32_t other = hear_call(&worker, "'call',['count',nil,{'component':'shop','instance':'till','timeout':");
        io_client_say(&worker, "[1,%u,nil,3][1,%u,nil,{'sold':true}]", other, one);
        io_client_expect(&client, "[1,2,nil,3]");
        io_client_expect(&client, "[1,1,nil,{'sold':true}]");
        end();
}
END_TEST

START_TEST(what_waits_for_a_replica_comes_behind_the_answer_of_serve) {
        begin();
        io_client_say(&client, "[0,1,'call',['mill','grind',1]][0,2,'call',['mill','grind',2]][0,3,'call',['mill','grind',3]][0,4,'ping',[]]");
        io_client_expect(&client, "[1,4,nil,'pong']");
        io_client_say(&worker, "[0,1,'ping',[]][0,2,'serve',['mill',{'instance':'wheel'}]][0,3,'ping',[]]");
        io_client_expect(&worker, "[1,1,nil,'pong']");
        io_client_expect(&worker, "[1,2,nil,{'instance':'wheel'}]");
        uint32_t one = hear_call(&worker, "'call',['grind',1,");
        hear_call(&worker, "'call',['grind',2,");
        io_client_expect(&worker, "[1,3,nil,'pong']");
        /* The third when one of the two is answered. */
        io_client_say(&worker, "[1,%u,nil,'flour']", one);
        hear_call(&worker, "'call',['grind',3,");
        io_client_expect(&client, "[1,1,nil,'flour']");
        end();
}
END_TEST

START_TEST(one_connection_serves_several_and_listens) {
        begin();
        char handle[64];
        serve(&worker, "shop", "{'method':'shop','params':[1]}");
        serve(&worker, "mill", "{'method':'mill'}");
        io_client_say(&worker, "[0,1,'listen',[]]");
        ck_assert_int_eq(sscanf(io_client_hear(&worker), "[1,1,nil,'%38[^']']", handle), 1);
        io_client_say(&client, "[0,1,'call',['shop','sell',1]][0,2,'call',['mill','grind',2]][0,3,'ask',['%s','what',[3]]]", handle);
        uint32_t sell = hear_call(&worker, "'shop',[1,['sell',1,{");
        uint32_t grind = hear_call(&worker, "'mill',['grind',2,{");
        uint32_t ask = hear_call(&worker, "'message',['what',3]]");
        ck_assert(sell != grind && grind != ask && sell != ask);
        io_client_say(&worker, "[1,%u,nil,'c'][1,%u,nil,'b'][1,%u,nil,'a']", ask, grind, sell);
        io_client_expect(&client, "[1,3,nil,'c']");
        io_client_expect(&client, "[1,2,nil,'b']");
        io_client_expect(&client, "[1,1,nil,'a']");
        /* A second answer, and one to nothing, are ignored. */
        io_client_say(&worker, "[1,%u,nil,'again'][1,77777,nil,1][0,5,'ping',[]]", sell);
        io_client_expect(&worker, "[1,5,nil,'pong']");
        end();
}
END_TEST

START_TEST(one_replica_per_component_and_connection) {
        begin();
        serve(&worker, "shop", "{'instance':'till'}");
        io_client_say(&worker, "[0,1,'serve',['shop']]");
        io_client_expect(&worker, "[1,1,[0,'taken: this connection serves shop already (ran: no)'],nil]");
        io_client_say(&client, "[0,1,'serve',['shop',{'instance':'till'}]]");
        expect_start(&client, "[1,1,[0,'taken: ");
        io_client_say(&client, "[0,2,'serve',['nowhere']]");
        io_client_expect(&client, "[1,2,[1,'not-found: there is no component nowhere (ran: no)'],nil]");
        io_client_say(&client, "[0,3,'serve',['shop',{'operations':['sell']}]]");
        expect_start(&client, "[1,3,[1,'not-found: watch is stateful");
        io_client_say(&client, "[0,4,'serve',['shop',{'operations':['watch','sing']}]]");
        expect_start(&client, "[1,4,[1,'not-found: the component shop has no operation sing");
        io_client_say(&client, "[0,5,'serve',['shop',{'operations':['watch',7]}]]");
        expect_start(&client, "[1,5,[1,'bad-request: serve: operations[1] has to be the name of an operation");
        io_client_say(&client, "[0,6,'withdraw',['shop']]");
        io_client_expect(&client, "[1,6,[1,'not-found: this connection does not serve shop (ran: no)'],nil]");
        serve(&client, "shop", "{'operations':['watch','count']}");
        io_client_say(&client, "[0,7,'call',['shop','sell',1]]");
        hear_call(&worker, "'call',['sell',1,");
        end();
}
END_TEST

START_TEST(who_withdraws_gives_its_name_up_and_answers_what_it_holds) {
        begin();
        serve(&worker, "shop", "{'instance':'till'}");
        io_client_say(&client, "[0,1,'call',['shop','watch',1,{'instance':'till'}]]");
        uint32_t id = hear_call(&worker, "'call',['watch',1,");
        io_client_say(&client, "[0,2,'call',['shop','watch',2,{'instance':'till'}]][0,3,'ping',[]]");
        io_client_expect(&client, "[1,3,nil,'pong']");
        io_client_say(&worker, "[0,9,'withdraw',['shop']][0,10,'serve',['shop']][0,11,'withdraw',['shop']]");
        /* What waited by its name never ran; the name is free, though a call is held. */
        io_client_expect(&client, "[1,2,[0,'addressee: no replica of shop holds the name till (ran: no)'],nil]");
        io_client_expect(&worker, "[1,10,[0,'taken: this connection serves shop already (ran: no)'],nil]");
        serve(&client, "shop", "{'instance':'till'}");
        io_client_say(&worker, "[1,%u,nil,'seen']", id);
        io_client_expect(&client, "[1,1,nil,'seen']");
        io_client_expect(&worker, "[1,9,nil,nil]");
        io_client_expect(&worker, "[1,11,nil,nil]");
        io_client_say(&client, "[0,4,'withdraw',['shop']]");
        io_client_expect(&client, "[1,4,nil,nil]");
        serve(&worker, "shop", "{'instance':'till'}");
        end();
}
END_TEST

/* What nobody waits for is waited for no longer than the grace. */
START_TEST(who_withdraws_and_never_answers_is_let_go) {
        begin();
        fixture.system->limits.grace_ns = TR_NS_PER_MS;
        serve(&worker, "shop", "{'instance':'till'}");
        io_client_say(&client, "[0,1,'call',['shop','watch',1,{'instance':'till','timeout':1}]]");
        uint32_t id = hear_call(&worker, "'call',['watch',1,");
        io_client_expect(&client, "[1,1,[0,'abandoned: till did not answer in time (ran: maybe)'],nil]");
        char cancel[32];
        snprintf(cancel, sizeof(cancel), "[2,'cancel',[%" PRIu32 "]]", id);
        io_client_expect(&worker, cancel);
        io_client_say(&worker, "[0,9,'withdraw',['shop']]");
        io_client_expect(&worker, "[1,9,nil,nil]");
        /* It is too late for that, and it may serve again. */
        io_client_say(&worker, "[1,%" PRIu32 ",nil,'late']", id);
        serve(&worker, "shop", "{'instance':'till'}");
        io_client_say(&client, "[0,2,'call',['shop','watch',2,{'instance':'till'}]]");
        id = hear_call(&worker, "'call',['watch',2,");
        io_client_say(&worker, "[1,%" PRIu32 ",nil,'seen']", id);
        io_client_expect(&client, "[1,2,nil,'seen']");
        end();
}
END_TEST

START_TEST(what_somebody_waits_for_is_waited_for) {
        begin();
        fixture.system->limits.grace_ns = TR_NS_PER_MS;
        serve(&worker, "mill", "{}");
        io_client_say(&client, "[0,1,'call',['mill','grind',1]][0,2,'call',['mill','grind',2]]");
        uint32_t one = hear_call(&worker, "'call',['grind',1,");
        hear_call(&worker, "'call',['grind',2,");
        io_client_say(&client, "[0,3,'cancel',[2]]");
        io_client_expect_both(&client, "[1,3,nil,true]", "[1,2,[0,'cancelled: the caller took the request back (ran: maybe)'],nil]");
        expect_start(&worker, "[2,'cancel',[");
        io_client_say(&worker, "[0,9,'withdraw',['mill']]");
        /* So many looks later: */
        io_client_say(&client, "[0,4,'call',['shop','count',nil,{'timeout':500}]]");
        expect_start(&client, "[1,4,[0,'timeout: ");
        /* it has neither been let go nor has another got what it has. */
        serve(&client, "mill", "{}");
        io_client_say(&worker, "[1,%" PRIu32 ",nil,'flour'][0,8,'ping',[]]", one);
        io_client_expect(&client, "[1,1,nil,'flour']");
        io_client_expect(&worker, "[1,8,nil,'pong']");
        io_client_expect(&worker, "[1,9,nil,nil]");
        end();
}
END_TEST

static void stop_mill(struct io_fixture *of, void *asker) {
        struct tr_component *component = tr_component_find(of->system, "mill", 4);
        struct tr_message *end = fake_message(asker, 1, "", 0);
        end->kind = TR_MESSAGE_DONE;
        tr_target_watch(&component->target, end);
        component->target.ops->stop(&component->target, TR_STOP_ASKED, TR_NEVER);
        tr_component_unref(component);
}

START_TEST(a_component_that_stops_does_not_wait_for_what_nobody_waits_for) {
        begin();
        fixture.system->limits.grace_ns = TR_NS_PER_MS;
        serve(&worker, "mill", "{}");
        io_client_say(&client, "[0,1,'call',['mill','grind',1,{'timeout':1}]]");
        hear_call(&worker, "'call',['grind',1,");
        expect_start(&client, "[1,1,[0,'timeout: ");
        expect_start(&worker, "[2,'cancel',[");
        struct fake_asker asker;
        fake_asker_init(&asker);
        io_fixture_run(&fixture, stop_mill, &asker);
        fake_asker_wait(&asker, 1);
        ck_assert(asker.outcomes[0].resolved);
        io_client_say(&client, "[0,2,'instances',['mill']]");
        io_client_expect(&client, "[1,2,[1,'not-found: there is no component mill (ran: no)'],nil]");
        end();
        fake_asker_deinit(&asker);
}
END_TEST

/* As one is whose process is seen to have ended before what it said last is read. */
START_TEST(withdraws_when_it_is_gone_already) {
        begin();
        serve(&worker, "shop", "{'instance':'till'}");
        struct tr_component *component = tr_component_find(fixture.system, "shop", 4);
        struct tr_replica **replicas;
        uint32_t count;
        ck_assert_int_eq(tr_component_list_replicas(component, &replicas, &count), 0);
        ck_assert_uint_eq(count, 1);
        tr_replica_died(replicas[0]);
        tr_replica_unref(replicas[0]);
        free(replicas);
        tr_component_unref(component);
        io_client_say(&worker, "[0,1,'withdraw',['shop']]");
        io_client_expect(&worker, "[1,1,nil,nil]");
        serve(&worker, "shop", "{'instance':'till'}");
        end();
}
END_TEST

START_TEST(errors_that_are_declared_are_refusals) {
        begin();
        static const struct {
                const char *answer;
                const char *heard;
        } cases[] = {
                { "'SOLD_OUT'", "'code':'refused'," },
                { "#534f4c445f4f5554", "'code':'refused'," },
                { "['SOLD_OUT']", "'error':'SOLD_OUT'}" },
                { "['SOLD_OUT',nil]", "'error':'SOLD_OUT'}" },
                { "['SOLD_OUT',{'left':[0]}]", "'error':'SOLD_OUT','data':{'left':[0]}}" },
                { "'BROKEN'", "'code':'fault','message':'BROKEN','ran':'yes','kind':'error','actor':'shop','handler':'sell'}" },
                { "['SOLD_OUT',1,2]", "'code':'fault','message':'SOLD_OUT'," },
                { "[0,'it broke']", "'code':'fault','message':'it broke'," },
                { "{'message':'it broke','code':7}", "'code':'fault','message':'it broke'," },
                { "[]", "'code':'fault','message':'the client answered an error that has no text'," },
                { "7", "'code':'fault'," },
        };
        io_client_say(&client, "[0,1,'hello',[{'errors':'map'}]]");
        expect_start(&client, "[1,1,nil,{");
        serve(&worker, "shop", "nil");
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                io_client_say(&client, "[0,1,'call',['shop','sell',%zu]]", i);
                io_client_say(&worker, "[1,%u,%s,nil]", hear_call(&worker, "'call',['sell',"), cases[i].answer);
                io_client_hear(&client);
                ck_assert_msg(strstr(client.text, cases[i].heard) && strstr(client.text, "'ran':'yes'"), "%s: %s", cases[i].answer,
                              client.text);
        }
        end();
}
END_TEST

START_TEST(a_call_that_nobody_waits_for_is_told) {
        begin();
        serve(&worker, "mill", "nil");
        serve(&worker, "shop", "{'method':'sh'}");
        struct io_client other;
        io_client_init(&other, &fixture);
        io_client_say(&other, "[0,1,'call',['mill','grind',1]]");
        uint32_t one = hear_call(&worker, "'call',['grind',1,");
        io_client_say(&client, "[0,1,'call',['mill','grind',2]][0,2,'call',['shop','sell',3]][0,3,'call',['mill','grind',4]]");
        uint32_t two = hear_call(&worker, "'call',['grind',2,");
        uint32_t three = hear_call(&worker, "'sh',['sell',3,");
        char wanted[64];
        /* The connection that asked has gone. */
        io_client_deinit(&other);
        snprintf(wanted, sizeof(wanted), "[2,'cancel',[%u]]", one);
        io_client_expect(&worker, wanted);
        /* Of what had not gone out, and by a chosen method, nothing is told. */
        io_client_say(&client, "[0,4,'cancel',[3]][0,5,'cancel',[2]][0,6,'cancel',[1]]");
        io_client_expect(&client, "[1,3,[0,'cancelled: the caller took the request back (ran: no)'],nil]");
        io_client_expect(&client, "[1,4,nil,true]");
        io_client_expect(&client, "[1,2,[0,'cancelled: the caller took the request back (ran: maybe)'],nil]");
        io_client_expect(&client, "[1,5,nil,true]");
        io_client_expect(&client, "[1,1,[0,'cancelled: the caller took the request back (ran: maybe)'],nil]");
        io_client_expect(&client, "[1,6,nil,true]");
        snprintf(wanted, sizeof(wanted), "[2,'cancel',[%u]]", two);
        io_client_expect(&worker, wanted);
        /* They are in hand until they are answered, and that is nobody's. */
        io_client_say(&client, "[0,7,'call',['mill','grind',7]][0,8,'ping',[]]");
        io_client_expect(&client, "[1,8,nil,'pong']");
        io_client_say(&worker, "[1,%u,nil,1][1,%u,nil,2][1,%u,nil,3]", one, two, three);
        io_client_say(&worker, "[1,%u,nil,4]", hear_call(&worker, "'call',['grind',7,"));
        io_client_expect(&client, "[1,7,nil,4]");
        end();
}
END_TEST

START_TEST(who_serves_and_goes_hands_its_calls_on) {
        begin();
        struct io_client other;
        serve(&worker, "mill", "nil");
        io_client_say(&client, "[0,1,'call',['mill','grind',1]]");
        hear_call(&worker, "'call',['grind',1,");
        ck_assert_ptr_nonnull(strstr(worker.text, "'attempt':1"));
        io_client_init(&other, &fixture);
        serve(&other, "mill", "nil");
        /* One that only stops sending cannot answer any more, either. */
        shutdown(worker.fd, SHUT_WR);
        hear_call(&other, "'call',['grind',1,");
        ck_assert_ptr_nonnull(strstr(other.text, "'attempt':2"));
        io_client_expect(&worker, "end");
        io_client_deinit(&other);
        io_client_init(&other, &fixture);
        serve(&other, "mill", "nil");
        hear_call(&other, "'call',['grind',1,");
        ck_assert_ptr_nonnull(strstr(other.text, "'attempt':3"));
        io_client_deinit(&other);
        io_client_expect(&client, "[1,1,[0,'undeliverable: 3 replicas of mill died under it (ran: maybe)'],nil]");
        end();
}
END_TEST

START_TEST(what_is_addressed_to_who_goes_ends_at_once) {
        begin();
        serve(&worker, "shop", "{'instance':'till'}");
        io_client_say(&client, "[0,1,'call',['shop','watch',1,{'instance':'till'}]][0,2,'call',['shop','watch',2,{'instance':'till'}]]");
        hear_call(&worker, "'call',['watch',1,");
        io_client_deinit(&worker);
        io_client_expect_both(&client, "[1,2,[0,'addressee: no replica of shop holds the name till (ran: no)'],nil]",
                              "[1,1,[0,'abandoned: till died before it answered this (ran: maybe)'],nil]");
        io_client_init(&worker, &fixture);
        serve(&worker, "shop", "{'instance':'till'}");
        end();
}
END_TEST

START_TEST(an_outcome_may_be_a_notification) {
        begin();
        serve(&worker, "shop", "nil");
        io_client_say(&client, "[0,1,'call',['shop','sell',1,{'reply':{'method':'m','params':[5]}}]]");
        io_client_expect(&client, "[1,1,nil,nil]");
        io_client_say(&worker, "[1,%u,nil,'sold']", hear_call(&worker, "'call',['sell',1,"));
        io_client_expect(&client, "[2,'m',[5,[nil,'sold']]]");
        /* What the component says is the outcome; who it is for is the answer. */
        io_client_say(&client, "[0,2,'call',['shop','sing',1,{'reply':{'method':'m'}}]]");
        io_client_expect(&client, "[1,2,nil,nil]");
        io_client_expect(&client, "[2,'m',[[1,'not-found: the component shop has no operation sing (ran: no)'],nil]]");
        io_client_say(&client, "[0,3,'call',['nowhere','sing',1,{'reply':{'method':'m'}}]]");
        io_client_expect(&client, "[1,3,[1,'not-found: there is no component nowhere (ran: no)'],nil]");
        /* As notifications, with a reply and without. */
        io_client_say(&client, "[2,'call',['shop','sell',2]][2,'call',['shop','sell',3,{'reply':{'method':'n'}}]]");
        io_client_say(&worker, "[1,%u,nil,'dropped']", hear_call(&worker, "'call',['sell',2,"));
        io_client_say(&worker, "[1,%u,nil,'heard']", hear_call(&worker, "'call',['sell',3,"));
        io_client_expect(&client, "[2,'n',[nil,'heard']]");
        io_client_say(&client, "[2,'call',['shop','sing',2]][0,4,'ping',[]]");
        io_client_expect(&client, "[1,4,nil,'pong']");
        ck_assert_int_eq(atomic_load(&fixture.refused), 1);
        end();
}
END_TEST

START_TEST(values_go_out_as_the_connection_takes_them) {
        begin();
        serve(&worker, "shop", "nil");
        io_client_say(&client, "[0,1,'call',['shop','sell',{1:!1#00000000000000000000000000000001}]]");
        uint32_t id = hear_call(&worker, "'call',['sell',{'1':'actor:00000000000000000000000000000001'},");
        io_client_say(&worker, "[1,%u,nil,{2:!1#00000000000000000000000000000002}]", id);
        io_client_expect(&client, "[1,1,nil,{'2':'actor:00000000000000000000000000000002'}]");
        io_client_say(&worker, "[0,1,'hello',[{'values':'typed'}]]");
        expect_start(&worker, "[1,1,nil,{");
        io_client_say(&client, "[0,2,'hello',[{'values':'typed'}]]");
        expect_start(&client, "[1,2,nil,{");
        io_client_say(&client, "[0,1,'call',['shop','sell',{1:!1#00000000000000000000000000000001}]]");
        id = hear_call(&worker, "'call',['sell',{1:!1#00000000000000000000000000000001},");
        io_client_say(&worker, "[1,%u,nil,{2:!1#00000000000000000000000000000002}]", id);
        io_client_expect(&client, "[1,1,nil,{2:!1#00000000000000000000000000000002}]");
        end();
}
END_TEST

START_TEST(deadlines_are_the_calls_own) {
        begin();
        io_client_say(&client, "[0,1,'call',['mill','grind',1,{'timeout':1}]]");
        io_client_expect(&client, "[1,1,[0,'timeout: the deadline passed before it was answered (ran: no)'],nil]");
        io_client_say(&client, "[0,2,'hello',[{'timeout':1}]][0,3,'call',['mill','grind',2]]");
        expect_start(&client, "[1,2,nil,{");
        io_client_expect(&client, "[1,3,[0,'timeout: the deadline passed before it was answered (ran: no)'],nil]");
        serve(&worker, "mill", "nil");
        serve(&worker, "shop", "{'instance':'till'}");
        io_client_say(&client, "[0,4,'call',['mill','grind',3,{'timeout':50}]][0,5,'call',['shop','watch',4,{'instance':'till','timeout':60}]]");
        uint32_t grind = hear_call(&worker, "'call',['grind',3,");
        uint32_t watch = hear_call(&worker, "'call',['watch',4,");
        io_client_expect(&client, "[1,4,[0,'timeout: the deadline passed before it was answered (ran: maybe)'],nil]");
        io_client_expect(&client, "[1,5,[0,'abandoned: till did not answer in time (ran: maybe)'],nil]");
        char wanted[64];
        snprintf(wanted, sizeof(wanted), "[2,'cancel',[%u]]", grind);
        io_client_expect(&worker, wanted);
        snprintf(wanted, sizeof(wanted), "[2,'cancel',[%u]]", watch);
        io_client_expect(&worker, wanted);
        io_client_say(&client, "[0,6,'call',['mill','grind',1,{'trace':'nonsense'}]]");
        io_client_expect(&client, "[1,6,[1,'bad-request: call: the option trace has to be a traceparent (W3C Trace Context) (ran: no)'],nil]");
        end();
}
END_TEST

START_TEST(who_has_no_room_is_given_more_when_it_has) {
        struct tr_server_limits limits = io_fixture_limits();
        limits.requests = 2;
        begin_with(&limits);
        char handle[64];
        struct io_client other;
        io_client_init(&other, &fixture);
        serve(&worker, "shop", "{'concurrency':10}");
        serve(&worker, "mill", "{'concurrency':10}");
        io_client_say(&worker, "[0,1,'listen',[]]");
        ck_assert_int_eq(sscanf(io_client_hear(&worker), "[1,1,nil,'%38[^']']", handle), 1);
        /* Two asks of the listener: no replica of this connection can have anything. */
        io_client_say(&other, "[0,1,'ask',['%s','a',[]]][0,2,'ask',['%s','b',[]]]", handle, handle);
        uint32_t a = hear_call(&worker, "'message',['a']]");
        uint32_t b = hear_call(&worker, "'message',['b']]");
        io_client_say(&client, "[0,1,'call',['shop','sell',1]][0,2,'call',['mill','grind',2]][0,3,'ping',[]]");
        io_client_expect(&client, "[1,3,nil,'pong']");
        io_client_say(&worker, "[1,%u,nil,nil][1,%u,nil,nil]", a, b);
        io_client_expect(&other, "[1,1,nil,nil]");
        io_client_expect(&other, "[1,2,nil,nil]");
        uint32_t sell = hear_call(&worker, "'call',['sell',1,");
        uint32_t grind = hear_call(&worker, "'call',['grind',2,");
        io_client_say(&worker, "[1,%u,nil,'x'][1,%u,nil,'y']", sell, grind);
        io_client_expect(&client, "[1,1,nil,'x']");
        io_client_expect(&client, "[1,2,nil,'y']");
        io_client_deinit(&other);
        end();
}
END_TEST

/* Calls 0 to count - 1, each with half a megabyte. */
static void call_with_much(uint32_t count) {
        static char large[1 << 19];
        struct tr_writer call = TR_WRITER_INIT;
        for (uint32_t i = 0; i < count; i++) {
                tr_write_array(&call, 4);
                tr_write_uint(&call, 0);
                tr_write_uint(&call, i);
                tr_write_text(&call, "call");
                tr_write_array(&call, 3);
                tr_write_text(&call, "shop");
                tr_write_text(&call, "sell");
                tr_write_bin(&call, large, sizeof(large));
        }
        io_client_send(&client, call.data, call.len);
        tr_writer_deinit(&call);
}

START_TEST(what_waits_for_the_socket_can_be_taken_back) {
        struct tr_server_limits limits = io_fixture_limits();
        begin_with(&limits);
        serve(&worker, "shop", "{'concurrency':50}");
        /* The worker reads nothing: some go out, the others wait. */
        call_with_much(20);
        /* Not read: what follows is answered by the loop, to this client. */
        for (uint32_t i = 19; i > 10; i--) {
                char wanted[128];
                io_client_say(&client, "[0,100,'cancel',[%u]]", i);
                snprintf(wanted, sizeof(wanted), "[1,%u,[0,'cancelled: the caller took the request back (ran: no)'],nil]", i);
                io_client_expect(&client, wanted);
                io_client_expect(&client, "[1,100,nil,true]");
        }
        /* Exactly the others come; who serves answers each before it reads the next, which lies there unread meanwhile. */
        for (uint32_t i = 0; i <= 10; i++) {
                char wanted[64];
                io_client_say(&worker, "[1,%u,nil,%u]", (uint32_t)io_client_hear_id(&worker), i);
                snprintf(wanted, sizeof(wanted), "[1,%u,nil,%u]", i, i);
                io_client_expect(&client, wanted);
        }
        io_client_say(&worker, "[0,1,'ping',[]]");
        io_client_expect(&worker, "[1,1,nil,'pong']");
        end();
}
END_TEST

static void kill_shop(struct io_fixture *of, void *userdata) {
        struct tr_component *component = tr_component_find(of->system, "shop", 4);
        component->target.ops->kill(&component->target);
        tr_component_unref(component);
}

/* Who is to get it is gone when its socket has room again. */
START_TEST(what_waits_for_the_socket_of_one_that_is_killed_never_goes_out) {
        begin();
        serve(&worker, "shop", "{'concurrency':50}");
        call_with_much(20);
        io_client_say(&client, "[0,100,'ping',[]]");
        io_client_expect(&client, "[1,100,nil,'pong']");
        io_fixture_run(&fixture, kill_shop, NULL);
        uint32_t begun = 0;
        for (uint32_t i = 0; i < 20; i++) {
                const char *answer = io_client_hear(&client);
                ck_assert_msg(strstr(answer, "killed: ") || strstr(answer, "stopped: "), "%s", answer);
                begun += strstr(answer, "(ran: maybe)") != NULL;
        }
        ck_assert(begun > 0 && begun < 20);
        for (uint32_t i = 0; i < begun; i++)
                ck_assert_int_ge(io_client_hear_id(&worker), 0);
        io_client_say(&worker, "[0,1,'ping',[]]");
        io_client_expect(&worker, "[1,1,nil,'pong']");
        end();
}
END_TEST

START_TEST(list_and_info_have_components_and_their_replicas) {
        begin();
        serve(&worker, "mill", "{'instance':'wheel'}");
        io_client_say(&client, "[0,1,'list',[{'kind':'component'}]]");
        io_client_hear(&client);
        ck_assert_ptr_nonnull(strstr(client.text, "'kind':'component','name':'mill'"));
        ck_assert_ptr_nonnull(strstr(client.text, "'kind':'component','name':'shop'"));
        ck_assert_ptr_nonnull(strstr(client.text, "'kind':'replica','name':'wheel'"));
        io_client_say(&client, "[0,2,'list',[]]");
        io_client_hear(&client);
        ck_assert_ptr_nonnull(strstr(client.text, "'kind':'replica','name':'wheel'"));
        io_client_say(&client, "[0,3,'list',[{'kind':'actor'}]]");
        io_client_expect(&client, "[1,3,nil,[]]");
        io_client_say(&client, "[0,4,'info',['mill']]");
        io_client_hear(&client);
        ck_assert_ptr_nonnull(strstr(client.text, "'kind':'component','name':'mill'"));
        /* A published name comes before. */
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_say(&client, "[0,5,'publish',['mill','%s']][0,6,'info',['mill']]", handle);
        io_client_expect(&client, "[1,5,nil,nil]");
        io_client_hear(&client);
        ck_assert_ptr_nonnull(strstr(client.text, "'kind':'actor'"));
        io_client_say(&client, "[0,7,'info',['nowhere']]");
        io_client_expect(&client, "[1,7,[1,'not-found: nothing is published under the name nowhere (ran: no)'],nil]");
        end();
}
END_TEST

static void stop_component(struct io_fixture *of, void *userdata) {
        struct tr_component *component = userdata;
        component->target.ops->stop(&component->target, TR_STOP_ASKED, TR_NEVER);
}

static void kill_component(struct io_fixture *of, void *userdata) {
        struct tr_component *component = userdata;
        component->target.ops->kill(&component->target);
}

START_TEST(a_component_that_stops_lets_its_replicas_finish) {
        begin();
        struct tr_component *component = tr_component_find(fixture.system, "mill", 4);
        serve(&worker, "mill", "nil");
        io_client_say(&client, "[0,1,'call',['mill','grind',1]]");
        uint32_t id = hear_call(&worker, "'call',['grind',1,");
        io_fixture_run(&fixture, stop_component, component);
        io_client_say(&client, "[0,2,'call',['mill','grind',2]]");
        expect_start(&client, "[1,2,[0,'not-running: ");
        io_client_say(&worker, "[1,%u,nil,'flour']", id);
        io_client_expect(&client, "[1,1,nil,'flour']");
        tr_component_unref(component);
        /* It has ended, and may be declared and served again. */
        io_client_say(&client, "[0,3,'call',['mill','grind',3]]");
        expect_start(&client, "[1,3,[1,'not-found: there is no component mill");
        io_fixture_declare(&fixture, MILL);
        component = tr_component_find(fixture.system, "mill", 4);
        serve(&worker, "mill", "nil");
        io_client_say(&client, "[0,4,'call',['mill','grind',4]]");
        hear_call(&worker, "'call',['grind',4,");
        io_fixture_run(&fixture, kill_component, component);
        expect_start(&client, "[1,4,[0,'");
        ck_assert_ptr_nonnull(strstr(client.text, "(ran: maybe)'],nil]"));
        tr_component_unref(component);
        io_client_say(&worker, "[0,1,'withdraw',['mill']]");
        io_client_expect(&worker, "[1,1,[1,'not-found: this connection does not serve mill (ran: no)'],nil]");
        end();
}
END_TEST

static void close_all(struct io_fixture *of, void *userdata) {
        struct tr_connection *connection;
        while ((connection = tr_list_first(&of->server->connections, struct tr_connection, link)))
                tr_connection_close(connection);
}

START_TEST(a_connection_may_be_closed_with_calls_in_hand) {
        begin();
        char handle[64];
        serve(&worker, "mill", "nil");
        io_client_say(&client, "[0,1,'call',['mill','grind',1]]");
        hear_call(&worker, "'call',['grind',1,");
        struct io_client listener;
        io_client_init(&listener, &fixture);
        io_client_say(&listener, "[0,1,'listen',[]]");
        ck_assert_int_eq(sscanf(io_client_hear(&listener), "[1,1,nil,'%38[^']']", handle), 1);
        io_client_say(&client, "[0,2,'ask',['%s','what',[]]]", handle);
        hear_call(&listener, "'message',['what']]");
        io_fixture_run(&fixture, close_all, NULL);
        io_client_expect(&client, "end");
        io_client_expect(&worker, "[2,'cancel',[0]]"); /* who called was closed first */
        io_client_expect(&worker, "end");
        io_client_deinit(&listener);
        end();
}
END_TEST

/* Confined connections */

static _Atomic int served, ended;

static void on_serves(void *userdata, struct tr_replica *replica) {
        ck_assert_ptr_eq(userdata, &served);
        ck_assert_str_eq(replica->instance, "w-1");
        ck_assert_str_eq(replica->kind, "process");
        ck_assert_uint_eq(replica->index, 3);
        atomic_fetch_add(&served, 1);
}

static void on_ended(void *userdata) {
        atomic_fetch_add(&ended, 1);
}

static void adopt(struct io_fixture *of, void *userdata) {
        const struct tr_adoption adoption = {
                .component = "mill",
                .instance = "w-1",
                .index = 3,
                .pid = 4711,
                .serves = on_serves,
                .ended = on_ended,
                .userdata = &served,
        };
        ck_assert_int_eq(tr_server_adopt(of->server, *(int *)userdata, &adoption), 0);
}

START_TEST(a_process_of_the_daemons_serves_its_component_and_calls) {
        struct tr_server_limits limits = io_fixture_limits();
        limits.connections = 2;
        begin_with(&limits);
        struct io_client process = { 0 };
        int fds[2];
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        process.fd = fds[0];
        io_fixture_run(&fixture, adopt, &fds[1]);

        static const char *const denied[] = { "send", "ask", "done", "find", "listen", "spawn", "pool", "stop", "detach", "publish",
                                              "unpublish", "list", "info", "subscribe", "unsubscribe", "shutdown" };
        for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++) {
                char wanted[200];
                io_client_say(&process, "[0,1,'%s',[]]", denied[i]);
                snprintf(wanted, sizeof(wanted),
                         "[1,1,[1,'denied: %s: a process that the daemon has started may serve its component, and call, only (ran: no)'],nil]",
                         denied[i]);
                io_client_expect(&process, wanted);
        }
        io_client_say(&process, "[0,2,'hello',[]]");
        io_client_hear(&process);
        ck_assert_ptr_nonnull(strstr(process.text, "'pid':4711,'roles':['call','serve']}"));
        io_client_say(&process, "[0,3,'serve',['shop']]");
        expect_start(&process, "[1,3,[1,'denied: serve: this process was started for mill");
        io_client_say(&process, "[0,4,'serve',['mill',{'instance':'mine'}]]");
        expect_start(&process, "[1,4,[1,'denied: serve: ");
        ck_assert_int_eq(atomic_load(&served), 0);
        io_client_say(&process, "[0,5,'serve',['mill']]");
        io_client_expect(&process, "[1,5,nil,{'instance':'w-1'}]");
        ck_assert_int_eq(atomic_load(&served), 1);

        serve(&worker, "shop", "nil");
        io_client_say(&client, "[0,1,'call',['mill','grind',1]]");
        uint32_t grind = hear_call(&process, "'call',['grind',1,");
        io_client_say(&process, "[0,6,'call',['shop','sell',2]][0,7,'instances',['mill']]");
        io_client_expect(&process, "[1,7,nil,['w-1']]");
        io_client_say(&worker, "[1,%u,nil,'sold']", hear_call(&worker, "'call',['sell',2,"));
        io_client_expect(&process, "[1,6,nil,'sold']");
        io_client_say(&process, "[1,%u,nil,'ground'][0,8,'withdraw',['mill']]", grind);
        io_client_expect(&client, "[1,1,nil,'ground']");
        io_client_expect(&process, "[1,8,nil,nil]");
        ck_assert_int_eq(atomic_load(&ended), 0);
        io_client_deinit(&process);
        end();
        ck_assert_int_eq(atomic_load(&ended), 1);
}
END_TEST

suite_main("serving", a_call_goes_to_who_serves_and_its_answer_back,
           what_waits_for_a_replica_comes_behind_the_answer_of_serve, one_connection_serves_several_and_listens,
           one_replica_per_component_and_connection, who_withdraws_gives_its_name_up_and_answers_what_it_holds,
           who_withdraws_and_never_answers_is_let_go, what_somebody_waits_for_is_waited_for,
           a_component_that_stops_does_not_wait_for_what_nobody_waits_for, withdraws_when_it_is_gone_already,
           errors_that_are_declared_are_refusals, a_call_that_nobody_waits_for_is_told,
           who_serves_and_goes_hands_its_calls_on, what_is_addressed_to_who_goes_ends_at_once,
           an_outcome_may_be_a_notification, values_go_out_as_the_connection_takes_them, deadlines_are_the_calls_own,
           who_has_no_room_is_given_more_when_it_has, what_waits_for_the_socket_can_be_taken_back,
           what_waits_for_the_socket_of_one_that_is_killed_never_goes_out,
           list_and_info_have_components_and_their_replicas, a_component_that_stops_lets_its_replicas_finish,
           a_connection_may_be_closed_with_calls_in_hand, a_process_of_the_daemons_serves_its_component_and_calls);
