/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepting. Several at once, but not without end: connections that are there have their turn in between.
 */
#include "config.h"

#include "daemon/io/listener.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/io/server_internal.h"
#include "daemon/io/socket.h"

#define ACCEPTS_PER_ROUND 64
/* Without a descriptor to be had the socket stays ready, and the loop would turn without end; those who want to
 * connect wait in the backlog meanwhile. */
#define PAUSE_MS 100

static void listener_pause(struct tr_listener *listener, int error) {
        struct timeval after = { .tv_usec = PAUSE_MS * 1000 };
        tr_log(TR_LOG_WARNING, "cannot accept a connection for now: %s", strerror(error));
        event_del(listener->event);
        event_add(listener->pause, &after);
}

static void on_pause_over(int fd, short what, void *userdata) {
        struct tr_listener *listener = userdata;
        event_add(listener->event, NULL);
}

static void on_acceptable(int fd, short what, void *userdata) {
        struct tr_listener *listener = userdata;
        for (unsigned int i = 0; i < ACCEPTS_PER_ROUND; i++) {
                int accepted = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (accepted >= 0) {
                        tr_server_accept(listener->server, accepted);
                        continue;
                }
                if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                        listener_pause(listener, errno);
                /* Else there is none, or one that was there has gone. */
                return;
        }
}

int tr_listener_new(struct tr_server *server, const struct tr_socket *take_socket, const char *path,
                    struct tr_listener **ret_listener) {
        struct tr_listener *listener = calloc(1, sizeof(*listener));
        if (!listener) {
                close(take_socket->fd);
                if (take_socket->lock_fd >= 0)
                        close(take_socket->lock_fd);
                return tr_error_origin(-ENOMEM);
        }
        struct event_base *base = tr_loop_base(server->loop);
        listener->server = server;
        listener->fd = take_socket->fd;
        listener->lock_fd = take_socket->lock_fd;
        tr_list_init(&listener->link);
        listener->path = path ? strdup(path) : NULL;
        listener->event = event_new(base, listener->fd, EV_READ | EV_PERSIST, on_acceptable, listener);
        listener->pause = evtimer_new(base, on_pause_over, listener);
        if ((path && !listener->path) || !listener->event || !listener->pause || event_add(listener->event, NULL) < 0) {
                tr_listener_free(listener);
                return tr_error_origin(-ENOMEM);
        }
        *ret_listener = listener;
        return 0;
}

void tr_listener_free(struct tr_listener *listener) {
        if (!listener)
                return;
        tr_list_unlink(&listener->link);
        if (listener->event)
                event_free(listener->event);
        if (listener->pause)
                event_free(listener->pause);
        /* While the lock is held nobody else can have bound there. */
        if (listener->path)
                unlink(listener->path);
        close(listener->fd);
        if (listener->lock_fd >= 0)
                close(listener->lock_fd);
        free(listener->path);
        free(listener);
}
