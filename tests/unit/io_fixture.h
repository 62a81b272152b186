/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_IO_FIXTURE_H
#define TESTS_IO_FIXTURE_H

#include <pthread.h>
#include <semaphore.h>

#include "daemon/io/loop.h"
#include "daemon/io/server.h"
#include "proto/value.h"
#include "tests/unit/fake_behaviour.h"

/*
 * A server on a loop thread of its own, with actors of the fake behaviour, and clients on socket pairs.
 */
struct io_fixture {
        struct tr_loop *loop;
        struct tr_feed *feed;
        struct tr_traces *traces;
        struct tr_system *system;
        struct tr_server *server;
        struct fake_shared shared;
        pthread_t thread;
        sem_t done;
        _Atomic int shutdowns; /* calls of the method */
        _Atomic int refused;   /* the hook's */
        size_t fds;            /* open before it was made */
};

/* Limits for tests: generous, but for what a test wants to reach. */
struct tr_server_limits io_fixture_limits(void);
void io_fixture_init(struct io_fixture *fixture, const struct tr_server_limits *limits);
/* Ends everything, and holds that no descriptor is left. */
void io_fixture_deinit(struct io_fixture *fixture);
/* Runs a function on the loop thread, and waits for it. */
void io_fixture_run(struct io_fixture *fixture, void (*run)(struct io_fixture *fixture, void *userdata),
                    void *userdata);

/* Declares a component, by the JSON of its manifest. */
void io_fixture_declare(struct io_fixture *fixture, const char *manifest);

/* The client's end of a connection. */
struct io_client {
        int fd;
        uint8_t *data; /* received and not read */
        size_t bytes;
        char text[4096]; /* the answer read last */
};

void io_client_init(struct io_client *client, struct io_fixture *fixture);
/* Has the server accept one end of a socket pair, as if it had come from a listener. */
void io_fixture_accept(struct io_fixture *fixture, int take_fd);
void io_client_deinit(struct io_client *client);
/* Sends bytes, or what the notation says. */
void io_client_send(struct io_client *client, const void *data, size_t bytes);
void io_client_say(struct io_client *client, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The next frame that the server sent, as text; "end" where it has closed. Waits for it. */
const char *io_client_hear(struct io_client *client);
/* The id of the next frame, a response, of which nothing else is looked at; -1 where the server has closed. */
int64_t io_client_hear_id(struct io_client *client);
/* Holds that the next frame is this. */
#define io_client_expect(client, wanted) ck_assert_str_eq(io_client_hear(client), wanted)
/* Holds that the next two are these, in any order. */
void io_client_expect_both(struct io_client *client, const char *one, const char *other);
/* What most tests begin and end with: a server and a client. `limits` NULL: those of io_fixture_limits(). */
void io_begin(struct io_fixture *fixture, struct io_client *client, const struct tr_server_limits *limits);
void io_end(struct io_fixture *fixture, struct io_client *client);
/* Starts an actor of the fake behaviour; its handle's text, until the next call. */
const char *io_client_spawn(struct io_client *client, const char *actor);

#endif
