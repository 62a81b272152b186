/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon object: what it is made of is created from the bottom up (host, signals, server, supervisor, pools, components, drain, store) and
 * destroyed in reverse. In between it serves, until a signal or the method `shutdown` begins the drain:
 *
 *      serving -> draining (no connection, no spawn; actors stop) -> over
 */
#include "config.h"

#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/access.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/components.h"
#include "daemon/core/system.h"
#include "daemon/drain.h"
#include "daemon/host.h"
#include "daemon/io/crew.h"
#include "daemon/io/access.h"
#include "daemon/io/loop.h"
#include "daemon/io/server.h"
#include "daemon/io/signals.h"
#include "daemon/io/systemd.h"
#include "daemon/pools.h"
#include "daemon/process.h"
#include "daemon/reload.h"
#include "daemon/store/sqlite_store.h"
#include "daemon/supervisor.h"
#include "daemon/watch/metrics.h"
#include "daemon/watch/trace_file.h"

struct tr_daemon {
        struct tr_daemon_options options;
        const struct tr_settings *settings; /* in effect */
        struct tr_settings *reloaded;       /* the same, where they are not those of the options, which are kept for what is not reloaded */
        struct tr_host host;
        struct tr_sqlite_store *store; /* NULL: there is none, and what needs it is told why */
        char *store_why;
        struct tr_signals *signals;
        struct tr_server *server;
        struct tr_crew *crew;
        struct tr_supervisor *supervisor;
        struct tr_pools *pools;
        struct tr_configured_components *components;
        struct tr_drain *drain;
        struct tr_timer watchdog;
        unsigned int awaited; /* of supervisor and components: that have not said that they are ready */
        bool draining;
};

static void daemon_drain(struct tr_daemon *daemon) {
        if (daemon->draining) {
                tr_log(TR_LOG_INFO, "stopping at once");
                tr_drain_hurry(daemon->drain);
                return;
        }
        daemon->draining = true;
        tr_log(TR_LOG_INFO, "stopping");
        tr_systemd_notify(daemon->options.systemd, "STOPPING=1");
        tr_server_drain(daemon->server);
        tr_supervisor_stop(daemon->supervisor);
        tr_drain_start(daemon->drain, daemon->settings->grace_ms * TR_NS_PER_MS);
}

static void on_drained(void *userdata) {
        struct tr_daemon *daemon = userdata;

        tr_loop_stop(daemon->host.loop);
}

static void on_shutdown(void *userdata) {
        struct tr_daemon *daemon = userdata;

        /* asked twice it is not hurried: whoever asks does not know of the other */
        if (!daemon->draining)
                daemon_drain(daemon);
}

/* Reloading */

static int daemon_apply_access(struct tr_daemon *daemon, const struct tr_settings *settings);
static struct tr_server_limits server_limits(const struct tr_settings_limits *limits);

/* The first of two failures; takes both. */
static struct tr_failure *first_of(struct tr_failure *take_one, struct tr_failure *take_other) {
        if (take_one)
                tr_failure_unref(take_other);
        return take_one ? take_one : take_other;
}

/* NULL with a descriptor (-1: none is configured), or why the file that is configured cannot be had. */
static struct tr_failure *open_trace_file(const struct tr_settings *settings, int *ret_fd) {
        const char *why;

        *ret_fd = -1;
        why = settings->trace_file ? tr_trace_file_open(settings->trace_file, ret_fd) : NULL;
        return why ? tr_failure_new(TR_CODE_LOAD, "%s:%d: trace.file: %s cannot be written: %s", settings->file,
                                    settings->trace_file_line, settings->trace_file, why) :
                     NULL;
}

/* Applies all of it, as far as it can be: what could not be was logged, and the first such thing is the answer. */
static struct tr_failure *daemon_apply(struct tr_daemon *daemon, const struct tr_settings *settings, int take_trace_fd) {
        const struct tr_server_limits limits = server_limits(&settings->limits);
        struct tr_failure *failure = NULL;
        bool failed;

        tr_reload_log_unapplied(daemon->options.settings, settings);
        tr_log_set_level((enum tr_log_level)settings->log_level);
        tr_log_set_format((enum tr_log_format)settings->log_format);
        tr_process_prepare_server(settings->limits.connections, settings->limits.actors);
        tr_host_set_limits(&daemon->host, settings);
        tr_server_set_limits(daemon->server, &limits);
        tr_crew_set_grace(daemon->crew, settings->grace_ms * TR_NS_PER_MS);
        failed = daemon_apply_access(daemon, settings) < 0;
        /* also the same file, which whoever rotates logs has renamed */
        failed |= tr_trace_file_set(daemon->host.trace_file, take_trace_fd) < 0;
        failed |= tr_supervisor_reload(daemon->supervisor, &settings->actors) < 0;
        if (failed)
                failure = tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the new configuration");
        failure = first_of(failure, tr_pools_set(daemon->pools, &settings->pools));
        return first_of(failure, tr_configured_components_set(daemon->components, &settings->components));
}

static void notify_reloading(const struct tr_daemon *daemon) {
        char state[64];

        /* before it is ready, it is not ready again either */
        if (daemon->awaited > 0)
                return;
        snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%llu",
                 (unsigned long long)(tr_clock_ns() / TR_NS_PER_US));
        tr_systemd_notify(daemon->options.systemd, state);
}

static struct tr_failure *daemon_reload(struct tr_daemon *daemon) {
        struct tr_settings *settings = NULL;
        struct tr_failure *failure;
        int trace_fd;

        if (daemon->draining)
                return tr_failure_new(TR_CODE_SHUTTING_DOWN, "the daemon is shutting down");
        notify_reloading(daemon);
        failure = tr_reload_read(daemon->options.config, daemon->options.scope, &settings);
        if (!failure)
                failure = open_trace_file(settings, &trace_fd);
        if (!failure) {
                failure = daemon_apply(daemon, settings, trace_fd);
                tr_settings_free(daemon->reloaded);
                daemon->settings = daemon->reloaded = tr_steal(settings);
        }
        tr_settings_free(settings);
        if (failure)
                tr_log(TR_LOG_ERROR, "reload: %s: %s", tr_code_text(failure->code), failure->message);
        else
                tr_log(TR_LOG_INFO, "reloaded");
        if (daemon->awaited == 0)
                tr_systemd_notify(daemon->options.systemd, "READY=1");
        return failure;
}

static struct tr_failure *on_reload(void *userdata) {
        return daemon_reload(userdata);
}

static void on_metrics(void *userdata, struct tr_writer *text) {
        const struct tr_daemon *daemon = userdata;
        const struct tr_watched watched = {
                .system = daemon->host.system,
                .server = daemon->server,
                .feed = daemon->host.feed,
                .traces = daemon->host.traces,
                .trace_file = daemon->host.trace_file,
        };

        tr_metrics_write(&watched, text);
}

static void on_signal(void *userdata, int signal) {
        if (signal == SIGHUP)
                tr_failure_unref(daemon_reload(userdata));
        else
                daemon_drain(userdata);
}

/* The supervisor, or the components. */
static void on_ready(void *userdata) {
        struct tr_daemon *daemon = userdata;

        if (--daemon->awaited > 0 || daemon->draining)
                return;
        tr_log(TR_LOG_INFO, "ready");
        tr_systemd_notify(daemon->options.systemd, "READY=1");
}

/* The timer fires on the loop, by the system whose lock every spawn and every end of an actor needs: fed means
 * alive. */
static void watchdog_feed(struct tr_daemon *daemon) {
        uint64_t after_ns = daemon->options.systemd->watchdog_ns / 2;

        if (after_ns == 0)
                return;
        tr_systemd_notify(daemon->options.systemd, "WATCHDOG=1");
        if (tr_system_set_timer(daemon->host.system, &daemon->watchdog, tr_clock_deadline_ns(after_ns)) < 0)
                tr_log(TR_LOG_ERROR, "the watchdog is not fed any more, for want of memory");
}

static void on_watchdog(struct tr_timer *timer) {
        watchdog_feed(tr_container_of(timer, struct tr_daemon, watchdog));
}

/* Creation */

static struct tr_server_limits server_limits(const struct tr_settings_limits *limits) {
        return (struct tr_server_limits){
                .connections = (uint32_t)limits->connections,
                .connections_per_user = (uint32_t)limits->connections_per_user,
                .requests = (uint32_t)limits->requests,
                .frame_bytes = limits->frame_bytes,
                .nesting = (uint32_t)limits->nesting,
                .output_bytes = limits->output_bytes,
                .stalled_ns = limits->stalled_ms * TR_NS_PER_MS,
                .queue = (uint32_t)limits->queue,
        };
}

static int daemon_create_host(struct tr_daemon *daemon) {
        const struct tr_settings *settings = daemon->options.settings;
        const struct tr_host_options options = {
                .settings = settings,
                .path = daemon->options.path,
                .allow = tr_host_allow(settings->allow),
                .grace_ns = settings->grace_ms * TR_NS_PER_MS,
                .fault_level = TR_LOG_WARNING,
        };

        return tr_error_fold(tr_host_init(&daemon->host, &options));
}

/* Whether there is to be no daemon without it: it was configured, or it is a user's own. The system's is where a daemon that somebody
 * starts by hand may not be able to write. One that is newer was written to by a daemon like this one, whoever that was. */
static bool store_has_to_be(const struct tr_daemon *daemon, int r) {
        return daemon->settings->store_path_line > 0 || daemon->options.scope == TR_SETTINGS_USER || r == TR_STORE_OPEN_NEWER;
}

static int daemon_of_store(int r) {
        switch (r) {
        case TR_STORE_OPEN_LOCKED:
                return TR_DAEMON_STORE_IN_USE;
        case TR_STORE_OPEN_NEWER:
                return TR_DAEMON_STORE_NEWER;
        default:
                return TR_DAEMON_NO_STORE;
        }
}

/* 0, TR_DAEMON_*, or a negative errno. */
static int daemon_open_store(struct tr_daemon *daemon) {
        const struct tr_settings *settings = daemon->settings;
        const char *why;
        int r;

        r = tr_sqlite_store_new(settings->store_path, &daemon->store, &daemon->store_why);
        if (r == 0) {
                daemon->host.system->store = tr_sqlite_store_interface(daemon->store);
                return 0;
        }
        if (r < 0)
                return tr_error_fold(r);
        why = daemon->store_why ? daemon->store_why : "out of memory";
        if (!store_has_to_be(daemon, r)) {
                tr_log(TR_LOG_WARNING, "there is no store, for tasks and entities: %s", why);
                daemon->host.system->store_why = why;
                return 0;
        }
        if (settings->store_path_line > 0)
                tr_log(TR_LOG_ERROR, "%s:%d: store.path: %s", settings->file, settings->store_path_line, why);
        else
                tr_log(TR_LOG_ERROR, "store.path: %s", why);
        return daemon_of_store(r);
}

static int daemon_create_server(struct tr_daemon *daemon) {
        const struct tr_server_options options = {
                .loop = daemon->host.loop,
                .system = daemon->host.system,
                .feed = daemon->host.feed,
                .traces = daemon->host.traces,
                .limits = server_limits(&daemon->options.settings->limits),
                .shutdown = on_shutdown,
                .reload = on_reload,
                .write_metrics = on_metrics,
                .userdata = daemon,
        };

        return tr_error_fold(tr_server_new(&options, &daemon->server));
}

static int daemon_apply_access(struct tr_daemon *daemon, const struct tr_settings *settings) {
        struct tr_problems notes = { 0 };
        struct tr_access access;
        int r = tr_access_resolve(settings, &notes, &access);

        if (r == 0)
                tr_server_set_access(daemon->server, &access);
        tr_problems_log(&notes);
        tr_problems_deinit(&notes);
        return tr_error_fold(r);
}

static int daemon_create_supervisor(struct tr_daemon *daemon) {
        const struct tr_supervisor_options options = {
                .loop = daemon->host.loop,
                .system = daemon->host.system,
                .actors = &daemon->options.settings->actors,
                .ready = on_ready,
                .userdata = daemon,
        };

        return tr_error_fold(tr_supervisor_new(&options, &daemon->supervisor));
}

/* 0, TR_DAEMON_NO_TRACE_FILE, or a negative errno. */
static int daemon_set_trace_file(struct tr_daemon *daemon) {
        struct tr_failure *failure;
        int fd;

        failure = open_trace_file(daemon->settings, &fd);
        if (failure) {
                tr_log(TR_LOG_ERROR, "%s", failure->message);
                tr_failure_unref(failure);
                return TR_DAEMON_NO_TRACE_FILE;
        }
        return tr_error_fold(tr_trace_file_set(daemon->host.trace_file, fd));
}

static int daemon_create_components(struct tr_daemon *daemon) {
        const struct tr_configured_components_options options = {
                .loop = daemon->host.loop,
                .system = daemon->host.system,
                .script = &daemon->host.script,
                .ready = on_ready,
                .userdata = daemon,
        };

        return tr_error_fold(tr_configured_components_new(&options, &daemon->components));
}

/* Sockets that were passed, all of them; else its own. As tr_server_listen(). */
static int daemon_listen(struct tr_daemon *daemon) {
        const struct tr_settings *settings = daemon->options.settings;
        const struct tr_listen listen = {
                .path = daemon->options.socket_path ? daemon->options.socket_path : settings->socket_path,
                .mode = (mode_t)settings->socket_mode,
                .group = settings->socket_group,
                .group_configured = settings->socket_group_line > 0,
        };
        int r = 0;

        if (daemon->options.systemd->sockets == 0) {
                r = tr_server_listen(daemon->server, &listen);
                if (r == 0)
                        tr_log(TR_LOG_INFO, "listening on %s", listen.path);
                return r;
        }
        for (unsigned int i = 0; r == 0 && i < daemon->options.systemd->sockets; i++)
                r = tr_server_listen_fd(daemon->server, TR_SYSTEMD_FIRST_SOCKET + (int)i);
        return r;
}

static int daemon_create(struct tr_daemon *daemon) {
        int r;

        r = daemon_create_host(daemon);
        if (r == 0)
                r = tr_signals_new(daemon->host.loop, on_signal, daemon, &daemon->signals);
        if (r == 0)
                r = daemon_create_server(daemon);
        if (r == 0)
                r = daemon_apply_access(daemon, daemon->settings);
        if (r == 0)
                r = tr_crew_new(daemon->host.loop, daemon->host.system, daemon->server,
                                daemon->options.settings->grace_ms * TR_NS_PER_MS, &daemon->crew);
        daemon->host.crew = daemon->crew;
        if (r == 0)
                r = daemon_create_supervisor(daemon);
        if (r == 0)
                r = tr_pools_new(daemon->host.system, &daemon->host.script, &daemon->pools);
        if (r == 0)
                r = daemon_create_components(daemon);
        if (r == 0)
                r = tr_drain_new(daemon->host.loop, daemon->host.system, on_drained, daemon, &daemon->drain);
        return tr_error_fold(r);
}

int tr_daemon_new(const struct tr_daemon_options *options, struct tr_daemon **ret_daemon) {
        struct tr_daemon *daemon = calloc(1, sizeof(*daemon));
        int r;

        if (!daemon)
                return tr_error_origin(-ENOMEM);
        daemon->options = *options;
        daemon->settings = options->settings;
        daemon->awaited = 2;
        daemon->watchdog.fire = on_watchdog;
        r = daemon_create(daemon);
        if (r == 0)
                r = daemon_set_trace_file(daemon);
        if (r == 0)
                r = daemon_listen(daemon);
        /* behind the socket: of two daemons that share both, the second is told of that */
        if (r == 0)
                r = daemon_open_store(daemon);
        if (r != 0) {
                tr_daemon_free(daemon);
                return r;
        }
        *ret_daemon = daemon;
        return 0;
}

int tr_daemon_run(struct tr_daemon *daemon) {
        watchdog_feed(daemon);
        tr_failure_unref(tr_pools_set(daemon->pools, &daemon->settings->pools));
        tr_failure_unref(tr_configured_components_set(daemon->components, &daemon->settings->components));
        tr_supervisor_start(daemon->supervisor);
        return tr_error_fold(tr_loop_run(daemon->host.loop));
}

void tr_daemon_free(struct tr_daemon *daemon) {
        if (!daemon)
                return;
        if (daemon->host.system)
                tr_system_clear_timer(daemon->host.system, &daemon->watchdog);
        /* what was submitted is done, and answered where that can be; nothing more is taken */
        tr_sqlite_store_close(daemon->store);
        tr_drain_free(daemon->drain);
        tr_configured_components_free(daemon->components);
        tr_pools_free(daemon->pools);
        tr_supervisor_free(daemon->supervisor);
        /* whose connections tell the crew that they end */
        tr_server_free(daemon->server);
        daemon->host.crew = NULL;
        tr_crew_free(daemon->crew);
        tr_signals_free(daemon->signals);
        tr_host_deinit(&daemon->host);
        tr_settings_free(daemon->reloaded);
        /* a stuck actor may come back to the host, which is in it, and to the store */
        if (!daemon->host.system) {
                tr_sqlite_store_free(daemon->store);
                free(daemon->store_why);
                free(daemon);
        }
}
