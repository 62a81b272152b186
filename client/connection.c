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
 * A connection that restores itself is apart when it has ended, and tries to connect now and then, a little less often
 * each time until the daemon has said hello. What is asked of it meanwhile waits in the output.
 */
#include "client/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client/dispatch.h"
#include "client/greeting.h"
#include "client/socket.h"

#define REQUESTS_DEFAULT 65536u
#define OUTPUT_DEFAULT_BYTES (4u << 20)
/* How soon a full backlog is tried again. */
#define CONNECT_AGAIN_MS 10
/* The pauses between tries where there is nobody: they double. */
#define RETRY_FIRST_MS 10
#define RETRY_LAST_MS 2000

static int64_t now_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

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

/* 0: it is connected, or connecting. */
static int open_address(struct troupe *troupe, bool nonblock) {
        int r, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (nonblock ? SOCK_NONBLOCK : 0), 0);

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

static int open_socket(const char *path, unsigned int flags, struct troupe *troupe) {
        if (strlen(path) >= sizeof(troupe->address.sun_path))
                return -ENAMETOOLONG;
        troupe->address.sun_family = AF_UNIX;
        strcpy(troupe->address.sun_path, path);
        return open_address(troupe, flags & TROUPE_NONBLOCK);
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
        troupe_value_free(&troupe->answer);
        free(troupe);
}

int troupe_connect(struct troupe **ret_troupe, const char *path, unsigned int flags) {
        struct troupe *troupe;
        int r;

        if (!ret_troupe || flags & ~(TROUPE_NONBLOCK | TROUPE_RECONNECT))
                return -EINVAL;
        troupe = calloc(1, sizeof(*troupe));
        if (!troupe)
                return -ENOMEM;
        troupe->fd = -1;
        troupe->pid = getpid();
        troupe->flags = flags;
        troupe->retry_after_ms = RETRY_FIRST_MS;
        troupe->requests_max = REQUESTS_DEFAULT;
        troupe->daemon_requests_max = UINT32_MAX;
        troupe->output_max_bytes = OUTPUT_DEFAULT_BYTES;
        tr_scanner_init(&troupe->scanner, TR_FRAME_DEFAULT);

        r = path ? open_socket(path, flags, troupe) : open_default(flags, troupe);
        if (!r)
                r = tr_greeting_write(troupe);
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
        tr_connection_end(troupe, NULL, true);
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

/* Try later. */
static void postpone(struct troupe *troupe) {
        if (troupe->fd >= 0)
                close(troupe->fd);
        troupe->fd = -1;
        troupe->connecting = false;
        troupe->apart = true;
        troupe->retry_at_ms = now_ms() + troupe->retry_after_ms;
        troupe->retry_after_ms *= 2;
        if (troupe->retry_after_ms > RETRY_LAST_MS)
                troupe->retry_after_ms = RETRY_LAST_MS;
}

void tr_connection_end(struct troupe *troupe, const struct troupe_value *why, bool for_good) {
        if (tr_connection_is_over(troupe))
                return;
        if (troupe->fd >= 0)
                close(troupe->fd);
        troupe->fd = -1;
        troupe->connecting = troupe->apart = troupe->stalled = false;
        tr_dispatch_lose_all(troupe, why);
        tr_output_drop(&troupe->output);
        tr_asked_lose_all(troupe);
        tr_incoming_lose_requests(&troupe->kept);
        troupe->handle[0] = '\0';
        if (for_good || !(troupe->flags & TROUPE_RECONNECT))
                return;
        postpone(troupe);
        tr_greeting_begin(troupe);
        (void)!tr_greeting_write(troupe); /* where there is no memory, whoever writes next tries again */
}

void tr_connection_is_good(struct troupe *troupe) {
        troupe->retry_after_ms = RETRY_FIRST_MS;
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

int troupe_on_link(struct troupe *troupe, troupe_link_callback *callback, void *userdata) {
        int r = tr_connection_check(troupe);

        if (r)
                return r;
        troupe->link_callback = callback;
        troupe->link_userdata = userdata;
        return 0;
}

int troupe_own_handle(const struct troupe *troupe, char ret_handle[TROUPE_HANDLE_SIZE]) {
        if (!troupe || !ret_handle)
                return -EINVAL;
        if (troupe->pid != getpid())
                return -ECHILD;
        if (!troupe->handle[0])
                return tr_connection_is_over(troupe) ? -ENOTCONN : -ENOENT;
        memcpy(ret_handle, troupe->handle, TROUPE_HANDLE_SIZE);
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
        return tr_connection_is_open(troupe) ? troupe->fd : -EAGAIN;
}

int troupe_events(const struct troupe *troupe) {
        int fd = troupe_fd(troupe);

        if (fd < 0)
                return fd == -ENOTCONN || fd == -EAGAIN ? 0 : fd;
        return POLLIN | (tr_output_waiting(&troupe->output) ? POLLOUT : 0);
}

/* When to try again to connect; -1 where there is nothing to try. */
static int retry_ms(const struct troupe *troupe) {
        int64_t left_ms;

        if (!troupe->apart)
                return troupe->connecting ? CONNECT_AGAIN_MS : -1;
        left_ms = troupe->retry_at_ms - now_ms();
        return left_ms > 0 ? (int)left_ms : 0;
}

int troupe_timeout_ms(const struct troupe *troupe) {
        if (!troupe)
                return -EINVAL;
        if (troupe->pid != getpid())
                return -ECHILD;
        if (troupe->answered.first || troupe->kept.first || troupe->stalled || tr_greeting_has_news(troupe))
                return 0;
        return retry_ms(troupe);
}

/* The beginning of another connection. */
static void connect_again(struct troupe *troupe) {
        if (now_ms() < troupe->retry_at_ms)
                return;
        if (tr_greeting_write(troupe) || open_address(troupe, true)) {
                postpone(troupe);
                return;
        }
        troupe->apart = false;
        tr_input_deinit(&troupe->input);
        tr_scanner_init(&troupe->scanner, TR_FRAME_DEFAULT);
        troupe->daemon_requests_max = UINT32_MAX;
}

void tr_connection_advance(struct troupe *troupe) {
        int r;

        if (troupe->apart) {
                connect_again(troupe);
                return;
        }
        if (!troupe->connecting)
                return;
        r = try_connect(troupe->fd, &troupe->address);
        if (!r)
                troupe->connecting = false;
        else if (r != -EAGAIN && troupe->flags & TROUPE_RECONNECT)
                postpone(troupe);
        else if (r != -EAGAIN)
                tr_connection_end(troupe, NULL, true);
}

void tr_connection_flush(struct troupe *troupe) {
        if (!tr_connection_is_open(troupe))
                return;
        if (!tr_output_flush(&troupe->output, troupe->fd))
                return;
        /* The daemon takes nothing any more. What it said before that is still to be read; the end comes behind it,
         * for which this sees to it that it comes. */
        tr_output_drop(&troupe->output);
        shutdown(troupe->fd, SHUT_RDWR);
}

int tr_connection_wait(struct troupe *troupe) {
        bool only_input = tr_connection_is_open(troupe) && !tr_output_waiting(&troupe->output);
        int r;

        /* With nothing to write, reading is the waiting. */
        if (!only_input && !troupe->stalled) {
                struct pollfd poll_fd = { .fd = troupe_fd(troupe), .events = troupe_events(troupe) };

                if (poll(&poll_fd, 1, retry_ms(troupe)) < 0 && errno != EINTR)
                        return -errno;
                tr_connection_advance(troupe);
                tr_connection_flush(troupe);
        }
        r = tr_dispatch_input(troupe, TR_DISPATCH_KEEP, only_input);
        return r < 0 ? r : 0;
}
