/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CLIENT_SOCKET_H
#define TR_CLIENT_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/un.h>

/*
 * Which socket, and getting a connection to it. Shared by the library and the command.
 */

/* The paths to try, in order. */
struct tr_socket_paths {
        char path[2][sizeof(((struct sockaddr_un *)0)->sun_path)];
        int count;
};

/* The user's own: $XDG_RUNTIME_DIR/troupe/troupe.sock, in /run/user/UID where that is not set. 0 or -ENAMETOOLONG. */
__attribute__((warn_unused_result)) int tr_socket_path_user(char *ret_path, size_t size);
/* The system's. */
const char *tr_socket_path_system(void);
/* What is tried where nothing else is said: TROUPE_SOCKET; else the user's, then the system's. 0 or -ENAMETOOLONG. */
__attribute__((warn_unused_result)) int tr_socket_paths_default(struct tr_socket_paths *ret_paths);

/* Whether a path that answered so is to be given up for the next one. */
bool tr_socket_is_absent(int r);

#endif
