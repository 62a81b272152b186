/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server: who may connect, how many, and where they all end.
 */
#include "config.h"

#include "daemon/io/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/core/system.h"
#include "daemon/io/confined.h"
#include "daemon/io/connection.h"
#include "daemon/io/listener.h"
#include "daemon/io/server_internal.h"
#include "daemon/io/socket.h"

/* Connections beyond the limits that are kept open at once to be told so; what is more is closed without a word. */
#define OVER_LIMIT_MAX 64
/* How often the log speaks of them. */
#define OVER_LIMIT_LOG_NS (10 * TR_NS_PER_S)

int tr_server_new(const struct tr_server_options *options, struct tr_server **ret_server) {
        struct tr_server *server = calloc(1, sizeof(*server));
        if (!server)
                return tr_error_origin(-ENOMEM);
        server->loop = options->loop;
        server->system = options->system;
        server->feed = options->feed;
        server->traces = options->traces;
        server->limits = options->limits;
        server->shutdown = options->shutdown;
        server->reload = options->reload;
        server->write_metrics = options->write_metrics;
        server->userdata = options->userdata;
        tr_list_init(&server->listeners);
        tr_list_init(&server->connections);
        tr_batch_init(&server->batch);
        tr_gather_init(&server->gather);

        server->piece = malloc(sizeof(*server->piece));
        int r = server->piece ? tr_unsent_new(server->loop, tr_connection_send_unsent, &server->unsent)
                              : tr_error_origin(-ENOMEM);
        if (r < 0) {
                tr_server_free(server);
                return tr_error_fold(r);
        }
        *ret_server = server;
        return 0;
}

void tr_server_free(struct tr_server *server) {
        if (!server)
                return;
        tr_server_drain(server);
        struct tr_connection *connection;
        while ((connection = tr_list_first(&server->connections, struct tr_connection, link)))
                tr_connection_close(connection);
        tr_unsent_free(server->unsent);
        tr_access_deinit(&server->access);
        tr_writer_deinit(&server->scratch);
        free(server->users);
        free(server->piece);
        free(server);
}

static int server_add_listener(struct tr_server *server, const struct tr_socket *take_socket, const char *path) {
        struct tr_listener *listener;
        int r = tr_listener_new(server, take_socket, path, &listener);
        if (r)
                return tr_error_fold(r);
        tr_list_append(&server->listeners, &listener->link);
        return 0;
}

int tr_server_listen(struct tr_server *server, const struct tr_listen *listen) {
        struct tr_socket socket;
        int r = tr_socket_listen(listen, &socket);
        return r ? r : server_add_listener(server, &socket, listen->path);
}

int tr_server_listen_fd(struct tr_server *server, int take_fd) {
        struct tr_socket socket = { .fd = take_fd, .lock_fd = -1 };
        int r = tr_socket_check(take_fd);
        if (r) {
                close(take_fd);
                return r;
        }
        return server_add_listener(server, &socket, NULL);
}

void tr_server_set_limits(struct tr_server *server, const struct tr_server_limits *limits) {
        server->limits = *limits;
}

void tr_server_set_access(struct tr_server *server, const struct tr_access *take_access) {
        struct tr_access before = server->access;
        struct tr_connection *connection;
        server->access = *take_access;
        tr_list_for_each(connection, &server->connections, link)
                tr_connection_authorize(connection);
        tr_access_deinit(&before);
}

void tr_server_drain(struct tr_server *server) {
        struct tr_listener *listener;
        while ((listener = tr_list_first(&server->listeners, struct tr_listener, link)))
                tr_listener_free(listener);
}

uint32_t tr_server_connections(const struct tr_server *server) {
        return server->connections_count - server->over_limit_count - server->adopted_count;
}

/* The entry of a user, made where there is none; NULL for want of memory. */
static struct tr_server_user *server_user(struct tr_server *server, uid_t uid) {
        for (uint32_t i = 0; i < server->users_count; i++)
                if (server->users[i].uid == uid)
                        return &server->users[i];
        struct tr_server_user *users = reallocarray(server->users, server->users_count + 1, sizeof(*users));
        if (!users)
                return NULL;
        server->users = users;
        users[server->users_count] = (struct tr_server_user){ .uid = uid };
        return &users[server->users_count++];
}

static void server_user_leaves(struct tr_server *server, uid_t uid) {
        for (uint32_t i = 0; i < server->users_count; i++) {
                if (server->users[i].uid != uid)
                        continue;
                if (--server->users[i].connections == 0)
                        server->users[i] = server->users[--server->users_count];
                return;
        }
}

/* Counts one more connection of a user; false where that is too many. */
static bool server_user_enters(struct tr_server *server, uid_t uid) {
        bool is_limited = uid != 0 && uid != (uid_t)server->system->own_uid;
        struct tr_server_user *user = server_user(server, uid);
        if (!user || tr_server_connections(server) >= server->limits.connections ||
            (is_limited && user->connections >= server->limits.connections_per_user)) {
                if (user && user->connections == 0)
                        server->users_count--; /* it was made just now, as the last one */
                return false;
        }
        user->connections++;
        return true;
}

static void server_log_over_limit(struct tr_server *server, uid_t uid) {
        uint64_t now_ns = tr_clock_ns();
        server->over_limit_total++;
        if (server->over_limit_logged_ns && now_ns - server->over_limit_logged_ns < OVER_LIMIT_LOG_NS)
                return;
        server->over_limit_logged_ns = now_ns;
        tr_log(TR_LOG_WARNING,
               "a connection of user %u is refused: limits.connections or connections_per_user is reached (%lu so far)",
               (unsigned int)uid, (unsigned long)server->over_limit_total);
}

static void server_enter(struct tr_server *server, struct tr_connection *connection) {
        tr_list_append(&server->connections, &connection->link);
        server->connections_count++;
        tr_connection_start(connection);
}

void tr_server_accept(struct tr_server *server, int take_fd) {
        struct tr_connection *connection;
        struct tr_peer peer;
        tr_peer_read(&peer, take_fd);
        uid_t uid = peer.uid;

        bool over_limit = !server_user_enters(server, uid);
        if (over_limit)
                server_log_over_limit(server, uid);
        if (over_limit && server->over_limit_count == OVER_LIMIT_MAX) {
                tr_peer_deinit(&peer);
                close(take_fd);
                return;
        }
        if (tr_connection_new(server, take_fd, &peer, over_limit, &connection) < 0) {
                if (!over_limit)
                        server_user_leaves(server, uid);
                return;
        }
        server->over_limit_count += over_limit;
        server_enter(server, connection);
}

int tr_server_adopt(struct tr_server *server, int take_fd, const struct tr_adoption *adoption) {
        struct tr_connection *connection;
        struct tr_peer peer = { .uid = (uid_t)server->system->own_uid, .gid = getegid(), .pid = adoption->pid };
        struct tr_confined *confined = tr_confined_new(adoption);
        if (!confined || fcntl(take_fd, F_SETFL, O_NONBLOCK) < 0 || fcntl(take_fd, F_SETFD, FD_CLOEXEC) < 0) {
                int r = confined ? -errno : -ENOMEM;
                tr_confined_free(confined);
                close(take_fd);
                return tr_error_origin(r);
        }
        int r = tr_connection_new(server, take_fd, &peer, false, &connection);
        if (r < 0) {
                tr_confined_free(confined);
                return tr_error_fold(r);
        }
        connection->confined = confined;
        tr_connection_authorize(connection);
        server->adopted_count++;
        server_enter(server, connection);
        return 0;
}

void tr_server_leave(struct tr_server *server, struct tr_connection *connection) {
        tr_list_unlink(&connection->link);
        server->connections_count--;
        if (connection->over_limit)
                server->over_limit_count--;
        else if (connection->confined)
                server->adopted_count--;
        else
                server_user_leaves(server, connection->peer.uid);
        tr_confined_tell_ended(connection);
        tr_confined_free(tr_steal(connection->confined));
        tr_connection_unref(connection);
}
