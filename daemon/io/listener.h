/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_LISTENER_H
#define TR_IO_LISTENER_H

#include <stdbool.h>

#include "daemon/base/error.h"
#include "daemon/base/list.h"

struct event;
struct tr_server;
struct tr_socket;

/* A listening socket, and how it accepts. Loop thread. */
struct tr_listener {
        struct tr_list link; /* among the server's */
        struct tr_server *server;
        int fd;
        int lock_fd; /* -1: somebody else's socket */
        char *path;  /* of an own one: removed at the end */
        struct event *event;
        struct event *pause; /* ends a pause after a want of descriptors */
};

/* Accepts from now on. Takes the socket's descriptors; `path` is of an own socket, else NULL. 0 or a negative errno. */
TR_MUST_CHECK int tr_listener_new(struct tr_server *server, const struct tr_socket *take_socket, const char *path,
                                  struct tr_listener **ret_listener);
/* Accepts no more. An own socket is removed. NULL is fine. */
void tr_listener_free(struct tr_listener *listener);

#endif
