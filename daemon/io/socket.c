/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's own socket.
 *
 * A lock file beside it decides who may have the path; it is never removed, since a lock on a file that is gone
 * protects nothing. A socket that is there all the same (somebody else's, or one left behind by a daemon that was
 * killed) is removed only where a connection to it is refused. Between bind() and listen() nobody can connect, and
 * that is when mode and group are set.
 */
#include "config.h"

#include "daemon/io/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/log.h"

#define BACKLOG 1024
/* Bytes of a group's entry at most. */
#define GROUP_BUFFER_BYTES ((size_t)64 << 10)

static int complain(const char *what, const char *path, int outcome) {
        tr_log(TR_LOG_ERROR, "%s: %s: %s", path, what, strerror(errno));
        return outcome;
}

static int make_address(const char *path, struct sockaddr_un *ret_address) {
        *ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
        size_t len = strlen(path);
        if (len == 0 || len >= sizeof(ret_address->sun_path)) {
                tr_log(TR_LOG_ERROR, "%s: a socket's path has 1 to %zu bytes", path, sizeof(ret_address->sun_path) - 1);
                return TR_LISTEN_BAD_PATH;
        }
        memcpy(ret_address->sun_path, path, len + 1);
        return 0;
}

/* Its directory, where that is missing. Only the last one: all above it are the system's. */
static int make_directory(const char *path) {
        TR_AUTO_FREE char *copy = strdup(path);
        if (!copy)
                return tr_error_origin(-ENOMEM);
        const char *directory = dirname(copy);
        if (mkdir(directory, 0755) < 0 && errno != EEXIST)
                return complain("cannot make the directory", directory, TR_LISTEN_BAD_PATH);
        return 0;
}

static int take_lock(const char *path, int *ret_fd) {
        TR_AUTO_FREE char *lock_path = NULL;
        if (asprintf(&lock_path, "%s.lock", path) < 0) {
                lock_path = NULL;
                return tr_error_origin(-ENOMEM);
        }
        TR_AUTO_CLOSE int fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return complain("cannot open", lock_path, TR_LISTEN_BAD_PATH);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK)
                        return complain("cannot lock", lock_path, TR_LISTEN_BAD_PATH);
                tr_log(TR_LOG_ERROR, "%s: another daemon listens there", path);
                return TR_LISTEN_IN_USE;
        }
        *ret_fd = fd;
        fd = -1;
        return 0;
}

/* Removes a socket that nobody listens on. */
static int remove_stale(const char *path, const struct sockaddr_un *address) {
        struct stat status;
        if (lstat(path, &status) < 0)
                return errno == ENOENT ? 0 : complain("cannot look at it", path, TR_LISTEN_BAD_PATH);
        if (!S_ISSOCK(status.st_mode)) {
                tr_log(TR_LOG_ERROR, "%s: is there, and is no socket", path);
                return TR_LISTEN_BAD_PATH;
        }
        TR_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return tr_error_origin(-errno);
        if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno != ECONNREFUSED) {
                tr_log(TR_LOG_ERROR, "%s: somebody listens there", path);
                return TR_LISTEN_IN_USE;
        }
        if (unlink(path) < 0)
                return complain("cannot remove what was left there", path, TR_LISTEN_BAD_PATH);
        return 0;
}

/* False where there is no such group. */
static bool find_group(const char *name, gid_t *ret_gid) {
        TR_AUTO_FREE char *buffer = malloc(GROUP_BUFFER_BYTES);
        struct group entry, *found = NULL;
        if (!buffer || getgrnam_r(name, &entry, buffer, GROUP_BUFFER_BYTES, &found) != 0 || !found)
                return false;
        *ret_gid = found->gr_gid;
        return true;
}

static int set_access(const struct tr_listen *listen) {
        gid_t gid;
        mode_t mode = listen->mode;
        bool given = listen->group && find_group(listen->group, &gid) && chown(listen->path, (uid_t)-1, gid) == 0;
        if (!given && listen->group_configured) {
                tr_log(TR_LOG_ERROR, "%s: the group %s is missing, or may not be given to it", listen->path,
                       listen->group);
                return TR_LISTEN_NO_GROUP;
        }
        if (!given) {
                mode = 0600;
                tr_log(TR_LOG_INFO, "%s: there is no group %s to be had: only its owner may connect", listen->path,
                       listen->group ? listen->group : "for it");
        }
        if (chmod(listen->path, mode) < 0)
                return complain("cannot set its mode", listen->path, TR_LISTEN_BAD_PATH);
        return 0;
}

static int bind_and_listen(const struct tr_listen *listen_, const struct sockaddr_un *address, int *ret_fd) {
        TR_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return tr_error_origin(-errno);
        if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
                return complain("cannot bind", listen_->path,
                                errno == EADDRINUSE ? TR_LISTEN_IN_USE : TR_LISTEN_BAD_PATH);
        int r = set_access(listen_);
        if (r == 0 && listen(fd, BACKLOG) < 0)
                r = tr_error_origin(-errno);
        if (r) {
                unlink(listen_->path);
                return r;
        }
        *ret_fd = fd;
        fd = -1;
        return 0;
}

int tr_socket_listen(const struct tr_listen *listen, struct tr_socket *ret_socket) {
        struct sockaddr_un address;
        TR_AUTO_CLOSE int lock_fd = -1;
        int r = make_address(listen->path, &address);
        if (r == 0)
                r = make_directory(listen->path);
        if (r == 0)
                r = take_lock(listen->path, &lock_fd);
        if (r == 0)
                r = remove_stale(listen->path, &address);
        if (r == 0)
                r = bind_and_listen(listen, &address, &ret_socket->fd);
        if (r)
                return r;
        ret_socket->lock_fd = lock_fd;
        lock_fd = -1;
        return 0;
}

static bool option_is(int fd, int option, int wanted) {
        int value;
        socklen_t bytes = sizeof(value);
        return getsockopt(fd, SOL_SOCKET, option, &value, &bytes) == 0 && value == wanted;
}

int tr_socket_check(int fd) {
        if (!option_is(fd, SO_DOMAIN, AF_UNIX) || !option_is(fd, SO_TYPE, SOCK_STREAM) ||
            !option_is(fd, SO_ACCEPTCONN, 1)) {
                tr_log(TR_LOG_ERROR, "descriptor %d, which was passed, is no listening Unix stream socket", fd);
                return TR_LISTEN_BAD_FD;
        }
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
                return tr_error_origin(-errno);
        return 0;
}
