/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which socket a client speaks to where its program does not say.
 *
 * "The user's where one listens" cannot be asked beforehand without a race: it is tried, and the system's is tried
 * where there was nobody. A socket that is there and may not be opened is not passed over: that it was meant is more
 * probable than that it was not.
 */
#include "client/socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYSTEM_PATH "/run/troupe/troupe.sock"
#define USER_PATH "/troupe/troupe.sock"

int tr_socket_path_user(char *ret_path, size_t size) {
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        int n;

        /* as `trouped --user` does: a relative one does not count, and without one it is what a login makes */
        if (runtime && *runtime == '/')
                n = snprintf(ret_path, size, "%s%s", runtime, USER_PATH);
        else
                n = snprintf(ret_path, size, "/run/user/%u%s", getuid(), USER_PATH);
        return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

const char *tr_socket_path_system(void) {
        return SYSTEM_PATH;
}

int tr_socket_paths_default(struct tr_socket_paths *ret_paths) {
        const char *given = getenv("TROUPE_SOCKET");
        int r;

        ret_paths->count = 0;
        if (given && *given) {
                if (strlen(given) >= sizeof(ret_paths->path[0]))
                        return -ENAMETOOLONG;
                strcpy(ret_paths->path[ret_paths->count++], given);
                return 0;
        }

        r = tr_socket_path_user(ret_paths->path[0], sizeof(ret_paths->path[0]));
        if (!r) /* where the path is too long, nobody listens there */
                ret_paths->count++;
        strcpy(ret_paths->path[ret_paths->count++], SYSTEM_PATH);
        return 0;
}

bool tr_socket_is_absent(int r) {
        return r == -ENOENT || r == -ECONNREFUSED || r == -ENOTDIR;
}
