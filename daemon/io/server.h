/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_SERVER_H
#define TR_IO_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/error.h"

struct tr_access;
struct tr_failure;
struct tr_feed;
struct tr_loop;
struct tr_manifest;
struct tr_manifest_replica;
struct tr_replica;
struct tr_server;
struct tr_system;
struct tr_traces;
struct tr_writer;

/*
 * The socket side of the daemon: its listeners, its connections, and the methods they answer. All of it belongs to
 * the loop thread; actors' threads meet it in a connection's output only.
 */

/* What the configuration's `limits` say to the socket side. */
struct tr_server_limits {
        uint32_t connections;
        uint32_t connections_per_user; /* root and the daemon's own user have no such limit */
        uint32_t requests;             /* unanswered ones, per connection */
        uint64_t frame_bytes;
        uint32_t nesting;      /* levels of an argument, at most TR_NESTING_MAX */
        uint64_t output_bytes; /* waiting to be read, per connection */
        uint64_t stalled_ns;   /* a connection whose answers are not read for so long is closed */
        uint32_t queue;        /* told by `hello` only */
};

struct tr_server_options {
        struct tr_loop *loop;
        struct tr_system *system;
        struct tr_feed *feed;
        struct tr_traces *traces;
        struct tr_server_limits limits;
        /* The method `shutdown` was called by somebody who may. Loop thread. */
        void (*shutdown)(void *userdata);
        /* The method `reload` was: NULL, or why it was not done, the caller's. */
        struct tr_failure *(*reload)(void *userdata);
        /* Appends the daemon's metrics as text, for the method `metrics`. Loop thread. A want of memory is in the writer. */
        void (*write_metrics)(void *userdata, struct tr_writer *text);
        void *userdata;
};

/* An own socket. */
struct tr_listen {
        const char *path;
        mode_t mode;
        const char *group;     /* who may connect, beside the owner */
        bool group_configured; /* it has to exist; else the socket is 0600 where it is not to be had */
};

/* Why there is no listening socket. The log says more. */
enum {
        TR_LISTEN_IN_USE = 1, /* another daemon listens there */
        TR_LISTEN_NO_GROUP,   /* the configured group is missing, or may not be given */
        TR_LISTEN_BAD_PATH,   /* too long, its directory is not to be had, or what is there is no socket */
        TR_LISTEN_BAD_FD,     /* a passed descriptor is no listening Unix stream socket */
};

/* 0 or a negative errno. The loop, the system, the feed and the traces outlive it. */
TR_MUST_CHECK int tr_server_new(const struct tr_server_options *options, struct tr_server **ret_server);
/* Ends all connections (what they started is told to stop) and removes an own socket. NULL is fine. */
void tr_server_free(struct tr_server *server);

/* Binds and listens. 0, TR_LISTEN_*, or a negative errno. */
TR_MUST_CHECK int tr_server_listen(struct tr_server *server, const struct tr_listen *listen);
/* Listens on a descriptor that somebody else bound (a service manager). It is closed in any case. As above. */
TR_MUST_CHECK int tr_server_listen_fd(struct tr_server *server, int take_fd);

/* For a reload: applies to what comes from now on. */
void tr_server_set_limits(struct tr_server *server, const struct tr_server_limits *limits);
/* Who may do what, from now on; also for connections that are there: what they ask next is judged by these rules, and events by
 * what they concern now. Without it there are no rules. */
void tr_server_set_access(struct tr_server *server, const struct tr_access *take_access);
/* No new connection from now on; those that are there are served on. */
void tr_server_drain(struct tr_server *server);

/* A connection that the daemon makes for a process which it starts (confined.h). All of it is copied, or a reference is taken. */
struct tr_adoption {
        const char *component;        /* that it may serve */
        const char *instance;         /* under that name; NULL: a random one */
        uint32_t index;               /* as in struct tr_replica_options, like all that follows but the last three */
        struct tr_manifest *manifest; /* may be NULL */
        const struct tr_manifest_replica *started_as;
        struct tr_replica *successor_of;
        int32_t pid; /* of the process */
        /* It serves from now on. May be NULL. */
        void (*serves)(void *userdata, struct tr_replica *replica);
        /* The connection has ended, whatever for, and nothing else is told. May be NULL. */
        void (*ended)(void *userdata);
        void *userdata; /* until it has ended */
};

/* Makes a connection of one end of a pair of stream sockets, without regard to limits of connections. Takes the descriptor. 0 or a
 * negative errno, and nothing is told then. */
TR_MUST_CHECK int tr_server_adopt(struct tr_server *server, int take_fd, const struct tr_adoption *adoption);
uint32_t tr_server_connections(const struct tr_server *server);

#endif
