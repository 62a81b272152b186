/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_SOCKET_H
#define TR_IO_SOCKET_H

#include "daemon/base/error.h"
#include "daemon/io/server.h"

/*
 * Making the daemon's own listening socket.
 */
struct tr_socket {
        int fd;
        int lock_fd; /* held while it listens: no other daemon takes the path */
};

/* 0, TR_LISTEN_*, or a negative errno. The log says why. */
TR_MUST_CHECK int tr_socket_listen(const struct tr_listen *listen, struct tr_socket *ret_socket);
/* 0, or TR_LISTEN_BAD_FD: a descriptor that is to be used as it is. */
TR_MUST_CHECK int tr_socket_check(int fd);

#endif
