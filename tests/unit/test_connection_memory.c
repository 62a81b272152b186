/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections without memory: whichever allocation fails, the request alone fails, and is answered, or the connection
 * ends, and the next one is served.
 */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/core/stock.h"
#include "tests/unit/failing.h"
#include "tests/unit/io_fixture.h"
#include "tests/unit/notation.h"
#include "tests/unit/suite.h"

static struct io_fixture fixture;
static struct io_client client;

static void begin(void) {
        struct tr_server_limits limits = io_fixture_limits();
        io_fixture_init(&fixture, &limits);
        io_client_init(&client, &fixture);
}

static void end(void) {
        io_client_deinit(&client);
        io_fixture_deinit(&fixture);
}

/* Receives one whole frame without allocating anything. 0 where the connection has ended. */
static size_t receive_frame(int fd, uint8_t *data, size_t size) {
        size_t bytes = 0;
        for (;;) {
                struct tr_reader reader = tr_reader(data, bytes);
                if (bytes && tr_read_skip(&reader) == 0)
                        return bytes;
                ssize_t received = recv(fd, data + bytes, size - bytes, 0);
                if (received <= 0)
                        return 0;
                bytes += (size_t)received;
        }
}

static bool is_closed(int fd) {
        char byte;
        return recv(fd, &byte, 1, MSG_PEEK) <= 0;
}

/* Says the same with allocation 1, 2, 3, ... failing until none does. Answers the last answer. */
static char *say_without_memory(const char *text) {
        static uint8_t answer[1 << 20];
        struct tr_writer writer = TR_WRITER_INIT;
        long n = 0;
        char *last = NULL;
        bool hit;
        notation_write(&writer, text);
        do {
                failing_arm(++n);
                ssize_t sent = send(client.fd, writer.data, writer.len, MSG_NOSIGNAL);
                size_t bytes = receive_frame(client.fd, answer, sizeof(answer));
                failing_arm(0);
                hit = failing_hit();
                ck_assert_int_eq(sent, (ssize_t)writer.len);
                if (bytes == 0) {
                        io_client_deinit(&client);
                        io_client_init(&client, &fixture);
                        continue;
                }
                struct tr_reader reader = tr_reader(answer, bytes);
                char *said = notation_read(&reader);
                if (hit)
                        ck_assert_msg(strstr(said, "no-memory: ") || strstr(said, "limit: ") ||
                                              strncmp(said, "[1,1,nil,", 9) == 0,
                                      "%s", said);
                free(last);
                last = said;
        } while (hit);
        tr_writer_deinit(&writer);
        return last;
}

static void expect(const char *text, const char *wanted) {
        char *said = say_without_memory(text);
        ck_assert_msg(strncmp(said, wanted, strlen(wanted)) == 0, "%s", said);
        free(said);
}

START_TEST(a_request_fails_alone) {
        tr_stock_disable();
        begin();
        char ask[128], stop[128];
        struct io_client other;
        io_client_init(&other, &fixture);
        const char *handle = io_client_spawn(&other, "worker");
        snprintf(ask, sizeof(ask), "[0,1,'ask',['%s','echo',[1],{'timeout':60000}]]", handle);
        snprintf(stop, sizeof(stop), "[0,1,'stop',['%s']]", handle);

        expect("[0,1,'ping',[]]", "[1,1,nil,'pong']");
        expect("[0,1,'hello',[{'errors':'pair'}]]", "[1,1,nil,{");
        expect("[0,1,'find',['nobody']]", "[1,1,nil,nil]");
        expect("[0,1,'nonsense',[]]", "[1,1,[1,'unknown-method: ");
        expect(ask, "[1,1,nil,1]");
        expect("[0,1,'subscribe',['log',{'method':'m','params':[1],'rate':1}]]", "[1,1,nil,nil]");
        expect("[0,1,'list',[]]", "[1,1,nil,[{");
        expect("[0,1,'spawn',['worker',[],{'publish':'shop','name':'the_shop','if_absent':true}]]", "[1,1,nil,'actor:");
        expect("[0,1,'listen',[{'method':'called','params':[1]}]]", "[1,1,nil,'actor:");
        expect(stop, "[1,1,nil,nil]");
        io_client_deinit(&other);
        end();
}
END_TEST

/* Which of the two has something to read. */
static int wait_for_either(int one, int other) {
        struct pollfd fds[] = { { .fd = one, .events = POLLIN }, { .fd = other, .events = POLLIN } };
        while (poll(fds, 2, -1) < 0)
                ;
        return fds[0].revents ? one : other;
}

/* The client asks a listener through the daemon, which may have no memory at any place on the way. Receives what it
 * hears, the nil that comes first left out. The test's own assertions allocate: there are none here. */
static size_t ask_without_memory(const struct tr_writer *request, int listener, uint8_t *data, size_t size) {
        static const char nil[] = "\x94\x01\x01\xc0\xc0", answer[] = "\x94\x01\x00\xc0\x2a";
        if (send(client.fd, request->data, request->len, MSG_NOSIGNAL) != (ssize_t)request->len)
                return 0;
        size_t bytes = receive_frame(client.fd, data, size);
        if (bytes < sizeof(nil) - 1 || memcmp(data, nil, sizeof(nil) - 1) != 0)
                return bytes;
        bytes -= sizeof(nil) - 1;
        memmove(data, data + sizeof(nil) - 1, bytes);
        if (bytes) /* both came at once */
                return bytes;
        if (wait_for_either(client.fd, listener) == listener && receive_frame(listener, data, size) > 0)
                (void)send(listener, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
        return receive_frame(client.fd, data, size);
}

/* Makes it somebody who can be asked; writes the request by which the client does, to whom a notification `f` is the outcome. */
typedef void make_askable(struct io_client *asked, char text[static 256]);

static void ask_each_other_without_memory(make_askable *make, const char *other_outcome) {
        static uint8_t data[4096];
        tr_stock_disable();
        bool hit;
        long n = 0;
        do {
                struct io_client listener;
                char text[256], *heard = NULL;
                struct tr_writer request = TR_WRITER_INIT;
                io_client_init(&listener, &fixture);
                make(&listener, text);
                notation_write(&request, text);

                failing_arm(++n);
                size_t bytes = ask_without_memory(&request, listener.fd, data, sizeof(data));
                failing_arm(0);
                hit = failing_hit();
                if (bytes > 0) {
                        struct tr_reader reader = tr_reader(data, bytes);
                        heard = notation_read(&reader);
                        ck_assert_msg(strcmp(heard, "[2,'f',[nil,42]]") == 0 ||
                                              (hit && (strstr(heard, "no-memory: ") || strstr(heard, other_outcome))),
                                      "%s", heard);
                } else {
                        ck_assert(hit);
                        io_client_deinit(&client);
                        io_client_init(&client, &fixture);
                }
                free(heard);
                tr_writer_deinit(&request);
                io_client_deinit(&listener);
        } while (hit);
        ck_assert_int_gt(n, 5);
}

static void make_listener(struct io_client *listener, char text[static 256]) {
        char handle[64];
        io_client_say(listener, "[0,1,'listen',[]]");
        ck_assert_int_eq(sscanf(io_client_hear(listener), "[1,1,nil,'%63[^']']", handle), 1);
        snprintf(text, 256, "[0,1,'ask',['%s','echo',[{'a':'b'}],{'reply':{'method':'f'}}]]", handle);
}

START_TEST(a_client_that_is_asked_answers_or_its_asker_hears_why_not) {
        begin();
        ask_each_other_without_memory(make_listener, "stopped: ");
        end();
}
END_TEST

static void make_replica(struct io_client *replica, char text[static 256]) {
        io_client_say(replica, "[0,1,'serve',['mill']]");
        ck_assert_int_eq(strncmp(io_client_hear(replica), "[1,1,nil,{'instance':", 21), 0);
        snprintf(text, 256, "[0,1,'call',['mill','grind',{'a':'b'},{'timeout':60000,'reply':{'method':'f'}}]]");
}

START_TEST(a_replica_answers_or_its_caller_hears_why_not) {
        begin();
        /* One that is lost is tried again elsewhere: there is nobody. */
        io_fixture_declare(&fixture, "{\"name\": \"mill\", \"deliveries\": 1, \"operations\": {\"grind\": {}}}");
        ask_each_other_without_memory(make_replica, "undeliverable: ");
        end();
}
END_TEST

START_TEST(a_connection_serves_or_hears_why_not) {
        static uint8_t data[4096];
        tr_stock_disable();
        begin();
        io_fixture_declare(&fixture, "{\"name\": \"mill\", \"operations\": {\"grind\": {}}}");
        struct tr_writer serve = TR_WRITER_INIT;
        notation_write(&serve, "[0,1,'serve',['mill',{'instance':'wheel','operations':['grind'],'method':'m','params':[1]}]]");
        bool hit;
        long n = 0;
        do {
                struct io_client server;
                io_client_init(&server, &fixture);
                failing_arm(++n);
                (void)send(server.fd, serve.data, serve.len, MSG_NOSIGNAL);
                size_t bytes = receive_frame(server.fd, data, sizeof(data));
                failing_arm(0);
                hit = failing_hit();
                if (bytes > 0) {
                        struct tr_reader reader = tr_reader(data, bytes);
                        char *heard = notation_read(&reader);
                        ck_assert_msg(strcmp(heard, "[1,1,nil,{'instance':'wheel'}]") == 0 || (hit && strstr(heard, "no-memory: ")), "%s",
                                      heard);
                        free(heard);
                } else {
                        ck_assert(hit);
                }
                /* Its name is free when all that it sent was seen, and it has gone. */
                shutdown(server.fd, SHUT_WR);
                while (receive_frame(server.fd, data, sizeof(data)) > 0)
                        ;
                io_client_deinit(&server);
        } while (hit);
        ck_assert_int_gt(n, 5);
        tr_writer_deinit(&serve);
        end();
}
END_TEST

START_TEST(a_connection_is_let_go_where_there_is_no_memory_for_it) {
        tr_stock_disable();
        begin();
        bool hit;
        long n = 0;
        do {
                int fds[2];
                ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
                struct io_client other = { .fd = fds[0] };
                failing_arm(++n);
                io_fixture_accept(&fixture, fds[1]);
                failing_arm(0);
                hit = failing_hit();
                /* Either it was closed at once, or it is served. */
                if (send(other.fd, "\x94\x00\x01\xa4ping\x90", 9, MSG_NOSIGNAL) == 9 && !is_closed(other.fd))
                        io_client_expect(&other, "[1,1,nil,'pong']");
                else
                        ck_assert(hit);
                io_client_deinit(&other);
        } while (hit);
        ck_assert_int_gt(n, 1);
        io_client_say(&client, "[0,1,'ping',[]]");
        io_client_expect(&client, "[1,1,nil,'pong']");
        end();
}
END_TEST

suite_main("connection without memory", a_request_fails_alone,
           a_client_that_is_asked_answers_or_its_asker_hears_why_not, a_replica_answers_or_its_caller_hears_why_not,
           a_connection_serves_or_hears_why_not, a_connection_is_let_go_where_there_is_no_memory_for_it);
