/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_TESTS_UNIT_PEER_H
#define TR_TESTS_UNIT_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/troupe.h"

/*
 * The other end of a connection of libtroupe, in the same thread, without a mind of its own: a test writes the answers
 * that it wants (ids are given out in a row, and the library's hello is 0), and looks at what came.
 */
struct peer {
        char directory[64];
        char path[80];
        int listen_fd;
        int fd; /* the connection; -1 before peer_accept() */
        uint8_t *received;
        size_t received_bytes;
};

void peer_init(struct peer *peer, int backlog);
void peer_deinit(struct peer *peer);

/* Connects the library to it, and answers its hello where `limits` (JSON) is not NULL. */
struct troupe *peer_connect(struct peer *peer, unsigned int flags, const char *limits);
void peer_accept(struct peer *peer);
void peer_close(struct peer *peer);
/* Nobody listens at its path from here on; and again. */
void peer_unlisten(struct peer *peer);
void peer_listen(struct peer *peer, int backlog);

void peer_write(struct peer *peer, const void *data, size_t bytes);
/* A response whose error and result are JSON. */
void peer_answer(struct peer *peer, uint32_t id, const char *error, const char *result);
/* A notification and a request of the daemon, with params in JSON. */
void peer_notify(struct peer *peer, const char *method, const char *params);
void peer_request(struct peer *peer, uint32_t id, const char *method, const char *params);

/* All that the library has sent since the last time, a line of JSON for each frame, without its hello; for free(). */
char *peer_heard(struct peer *peer);
/* The same with it; waits until something has come. */
char *peer_heard_all(struct peer *peer);

#endif
