/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection itself: making it, what to wait for on it, moving bytes, its end.
 *
 * A Unix socket connects at once or not at all, with one exception: where the daemon's backlog is full a connect that
 * may not wait fails with EAGAIN, and nothing can be polled for. Only then is there a stage `connecting`, which tries
 * again after a moment.
 *
 * The descriptor is in blocking mode; every system call on it says for itself whether it may wait.
 *
 * Room for later: a connection that restores itself (TROUPE_RECONNECT) does so in tr_connection_end(), before it is
 * over.
 */
#include "client/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/dispatch.h"
#include "client/request.h"
#include "client/socket.h"

#define REQUESTS_DEFAULT 65536u
#define OUTPUT_DEFAULT_BYTES (4u << 20)
/* How soon a full backlog is tried again. */
#define CONNECT_AGAIN_MS 10

static int set_blocking(int fd) {
        int flags = fcntl(fd, F_GETFL);

        return flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ? -errno : 0;
}

/* 0, -EAGAIN where it must be tried again, or why not. */
static int try_connect(int fd, const struct sockaddr_un *address) {
        while (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
                if (errno != EINTR)
                        return -errno;
        return set_blocking(fd);
}

static int open_socket(const char *path, unsigned int flags, struct troupe *troupe) {
        int r, fd;

        if (strlen(path) >= sizeof(troupe->address.sun_path))
                return -ENAMETOOLONG;
        troupe->address.sun_family = AF_UNIX;
        strcpy(troupe->address.sun_path, path);

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (flags & TROUPE_NONBLOCK ? SOCK_NONBLOCK : 0), 0);
        if (fd < 0)
                return -errno;
        r = try_connect(fd, &troupe->address);
        if (r && r != -EAGAIN) {
                close(fd);
                return r;
        }
        troupe->fd = fd;
        troupe->connecting = r == -EAGAIN;
        return 0;
}

static int open_default(unsigned int flags, struct troupe *troupe) {
        struct tr_socket_paths paths;
        int r = tr_socket_paths_default(&paths);

        for (int i = 0; !r && i < paths.count; i++) {
                r = open_socket(paths.path[i], flags, troupe);
                if (!r || i + 1 == paths.count || !tr_socket_is_absent(r))
                        break;
                r = 0;
        }
        return r;
}

void tr_connection_release(struct troupe *troupe) {
        if (troupe->fd >= 0)
                close(troupe->fd);
        for (struct troupe_pending *pending; (pending = tr_pending_table_pop(&troupe->table));)
                tr_pending_free(pending);
        for (struct troupe_pending *pending; (pending = tr_pending_queue_pop(&troupe->answered));)
                tr_pending_free(pending);
        tr_pending_table_deinit(&troupe->table);
        tr_incoming_deinit(&troupe->kept);
        tr_asked_free_all(troupe);
        tr_standing_deinit(&troupe->standing);
        tr_output_deinit(&troupe->output);
        tr_input_deinit(&troupe->input);
        tr_failure_clear(&troupe->failure);
        tr_failure_clear(&troupe->end);
        troupe_value_free(&troupe->answer);
        free(troupe);
}

int troupe_connect(struct troupe **ret_troupe, const char *path, unsigned int flags) {
        struct troupe *troupe;
        int r;

        if (!ret_troupe || flags & ~TROUPE_NONBLOCK)
                return -EINVAL;
        troupe = calloc(1, sizeof(*troupe));
        if (!troupe)
                return -ENOMEM;
        troupe->fd = -1;
        troupe->pid = getpid();
        troupe->requests_max = REQUESTS_DEFAULT;
        troupe->daemon_requests_max = UINT32_MAX;
        troupe->output_max_bytes = OUTPUT_DEFAULT_BYTES;
        tr_scanner_init(&troupe->scanner, TR_FRAME_DEFAULT);

        r = path ? open_socket(path, flags, troupe) : open_default(flags, troupe);
        if (!r)
                r = tr_request_greet(troupe);
        if (r) {
                tr_connection_release(troupe);
                return r;
        }
        *ret_troupe = troupe;
        return 0;
}

void troupe_free(struct troupe *troupe) {
        if (!troupe || troupe->freed)
                return;
        if (troupe->pid != getpid()) {
                tr_connection_release(troupe);
                return;
        }
        troupe->freed = true;
        tr_connection_end(troupe);
        tr_dispatch_enter(troupe);
        (void)!tr_dispatch_settle(troupe); /* needs no memory where it is freed */
        (void)tr_dispatch_leave(troupe);
}

int tr_connection_check(struct troupe *troupe) {
        if (!troupe)
                return -EINVAL;
        if (troupe->pid != getpid())
                return -ECHILD;
        tr_failure_clear(&troupe->failure);
        return tr_connection_is_over(troupe) ? -ENOTCONN : 0;
}

void tr_connection_end(struct troupe *troupe) {
        if (tr_connection_is_over(troupe))
                return;
        close(troupe->fd);
        troupe->fd = -1;
        troupe->connecting = false;
        tr_asked_lose_all(troupe);
}

const struct troupe_error *troupe_error(const struct troupe *troupe) {
        return troupe && troupe->failure.is_set && troupe->pid == getpid() ? &troupe->failure.error : NULL;
}

const char *troupe_path(const struct troupe *troupe) {
        return troupe->address.sun_path;
}

int troupe_set_limits(struct troupe *troupe, uint32_t requests, size_t output_bytes) {
        int r = tr_connection_check(troupe);

        if (r)
                return r;
        if (requests)
                troupe->requests_max = requests;
        if (output_bytes)
                troupe->output_max_bytes = output_bytes;
        return 0;
}

int troupe_on_room(struct troupe *troupe, troupe_room_callback *callback, void *userdata) {
        int r = tr_connection_check(troupe);

        if (r)
                return r;
        troupe->room_callback = callback;
        troupe->room_userdata = userdata;
        return 0;
}

static uint32_t requests_max(const struct troupe *troupe) {
        return troupe->requests_max < troupe->daemon_requests_max ? troupe->requests_max : troupe->daemon_requests_max;
}

bool tr_connection_has_room(const struct troupe *troupe) {
        return troupe->table.count < requests_max(troupe) &&
               tr_output_waiting(&troupe->output) < troupe->output_max_bytes;
}

bool tr_connection_has_much_room(const struct troupe *troupe) {
        return troupe->table.count <= requests_max(troupe) / 2 &&
               tr_output_waiting(&troupe->output) <= troupe->output_max_bytes / 2;
}

int troupe_fd(const struct troupe *troupe) {
        if (!troupe)
                return -EINVAL;
        if (troupe->pid != getpid())
                return -ECHILD;
        if (tr_connection_is_over(troupe))
                return -ENOTCONN;
        /* a socket that is not connected polls as hung up, at once and always */
        return troupe->connecting ? -EAGAIN : troupe->fd;
}

int troupe_events(const struct troupe *troupe) {
        int fd = troupe_fd(troupe);

        if (fd < 0)
                return fd == -ENOTCONN || fd == -EAGAIN ? 0 : fd;
        return POLLIN | (tr_output_waiting(&troupe->output) ? POLLOUT : 0);
}

int troupe_timeout_ms(const struct troupe *troupe) {
        int fd = troupe_fd(troupe);

        if (fd == -EINVAL || fd == -ECHILD)
                return fd;
        if (troupe->answered.first || troupe->kept.first || troupe->stalled || (fd == -ENOTCONN && troupe->table.count))
                return 0;
        return fd == -EAGAIN ? CONNECT_AGAIN_MS : -1;
}

void tr_connection_advance(struct troupe *troupe) {
        int r;

        if (!troupe->connecting)
                return;
        r = try_connect(troupe->fd, &troupe->address);
        if (!r)
                troupe->connecting = false;
        else if (r != -EAGAIN)
                tr_connection_end(troupe);
}

void tr_connection_flush(struct troupe *troupe) {
        if (tr_connection_is_over(troupe) || troupe->connecting)
                return;
        if (!tr_output_flush(&troupe->output, troupe->fd))
                return;
        /* The daemon takes nothing any more. What it said before that is still to be read; the end comes behind it,
         * for which this sees to it that it comes. */
        tr_output_deinit(&troupe->output);
        shutdown(troupe->fd, SHUT_RDWR);
}

int tr_connection_wait(struct troupe *troupe) {
        struct pollfd poll_fd = { .fd = troupe_fd(troupe), .events = troupe_events(troupe) };
        bool only_input = poll_fd.events == POLLIN;
        int r;

        /* With nothing to write, reading is the waiting. */
        if (!only_input && !troupe->stalled) {
                if (poll(&poll_fd, 1, troupe->connecting ? CONNECT_AGAIN_MS : -1) < 0 && errno != EINTR)
                        return -errno;
                tr_connection_advance(troupe);
                tr_connection_flush(troupe);
        }
        r = tr_dispatch_input(troupe, TR_DISPATCH_KEEP, only_input);
        return r < 0 ? r : 0;
}
