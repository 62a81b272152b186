/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of the daemon's own. That one has ended is seen by its pidfd, so that nobody else's children are waited for and no
 * signal handler is needed.
 */
#include "config.h"

#include "daemon/io/child.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/log.h"
#include "daemon/io/loop.h"

/* The descriptor's number in the process. */
#define CHILD_FD 3
/* A line of its output that is longer is cut into several. */
#define LINE_MAX_BYTES 4096

struct tr_child {
        char *name;
        pid_t pid; /* 0: it has ended */
        int pidfd;
        int output; /* what it writes; -1: no more */
        struct event *ended_event;
        struct event *output_event;
        void (*ended)(void *userdata, int status);
        void *userdata;
        size_t line_len;
        char line[LINE_MAX_BYTES];
};

/* Its output */

static void log_line(const struct tr_child *child, const char *line, size_t len) {
        const struct tr_log_context context = { .actor = child->name };
        tr_log_with(TR_LOG_INFO, &context, "%.*s", (int)len, line);
}

static void log_lines(struct tr_child *child) {
        char *begin = child->line, *end = child->line + child->line_len, *newline;
        while ((newline = memchr(begin, '\n', (size_t)(end - begin)))) {
                log_line(child, begin, (size_t)(newline - begin));
                begin = newline + 1;
        }
        child->line_len = (size_t)(end - begin);
        memmove(child->line, begin, child->line_len);
        if (child->line_len == LINE_MAX_BYTES) {
                log_line(child, child->line, LINE_MAX_BYTES);
                child->line_len = 0;
        }
}

static void output_close(struct tr_child *child) {
        if (child->output < 0)
                return;
        if (child->line_len > 0)
                log_line(child, child->line, child->line_len);
        child->line_len = 0;
        if (child->output_event)
                event_free(child->output_event);
        child->output_event = NULL;
        close(child->output);
        child->output = -1;
}

/* Once; answers whether there may be more. */
static bool output_read(struct tr_child *child) {
        ssize_t got = read(child->output, child->line + child->line_len, LINE_MAX_BYTES - child->line_len);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        if (got <= 0) {
                output_close(child);
                return false;
        }
        child->line_len += (size_t)got;
        log_lines(child);
        return true;
}

static void on_output(int fd, short what, void *userdata) {
        output_read(userdata);
}

/* Its end */

static void on_ended(int fd, short what, void *userdata) {
        struct tr_child *child = userdata;
        int status;
        if (waitpid(child->pid, &status, WNOHANG) != child->pid)
                return;
        /* What is in the pipe is the last that it said; a process that it left behind may hold the other end open. */
        while (child->output >= 0 && output_read(child))
                ;
        output_close(child);
        child->pid = 0;
        event_del(child->ended_event);
        child->ended(child->userdata, status);
}

void tr_child_signal(struct tr_child *child, int signal) {
        if (child->pid > 0)
                kill(-child->pid, signal);
}

void tr_child_free(struct tr_child *child) {
        if (!child)
                return;
        if (child->pid > 0) {
                int status;
                tr_child_signal(child, SIGKILL);
                while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
                        ;
        }
        output_close(child);
        if (child->ended_event)
                event_free(child->ended_event);
        if (child->pidfd >= 0)
                close(child->pidfd);
        free(child->name);
        free(child);
}

pid_t tr_child_pid(const struct tr_child *child) {
        return child->pid;
}

void tr_child_status_text(int status, char *ret_text, size_t size) {
        if (WIFSIGNALED(status))
                snprintf(ret_text, size, "was killed by SIG%s", sigabbrev_np(WTERMSIG(status)) ? sigabbrev_np(WTERMSIG(status)) : "?");
        else
                snprintf(ret_text, size, "exited with status %d", WEXITSTATUS(status));
}

/* Its start */

static bool names_same(const char *entry, const char *other) {
        size_t len = strcspn(entry, "=");
        return strncmp(entry, other, len) == 0 && other[len] == '=';
}

/* Whether one of the entries is of the same variable. */
static bool is_overridden(const char *entry, char *const *entries) {
        for (; entries && *entries; entries++)
                if (names_same(entry, *entries))
                        return true;
        return false;
}

/* The daemon's environment, with what the process gets beside; an array that the caller frees, of texts that are others'. */
static char **make_env(char *const *more, char *own) {
        char *const owns[] = { own, NULL };
        size_t count = 2;
        for (char **entry = environ; entry && *entry; entry++)
                count++;
        for (char *const *entry = more; entry && *entry; entry++)
                count++;
        char **env = calloc(count, sizeof(*env));
        size_t at = 0;
        if (!env)
                return NULL;
        for (char **entry = environ; entry && *entry; entry++)
                if (!is_overridden(*entry, more) && !is_overridden(*entry, owns))
                        env[at++] = *entry;
        for (char *const *entry = more; entry && *entry; entry++)
                if (!is_overridden(*entry, owns))
                        env[at++] = *entry;
        env[at] = own;
        return env;
}

/* What the process gets of descriptors. 0 or a positive errno. */
static int make_actions(const struct tr_child_options *options, int output, posix_spawn_file_actions_t *actions) {
        int r = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(actions, output, STDOUT_FILENO);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(actions, output, STDERR_FILENO);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(actions, options->fd, CHILD_FD);
        if (r == 0)
                r = posix_spawn_file_actions_addclosefrom_np(actions, CHILD_FD + 1);
        if (r == 0)
                r = posix_spawn_file_actions_addchdir_np(actions, options->cwd ? options->cwd : "/");
        return r;
}

static int make_attributes(posix_spawnattr_t *attributes) {
        sigset_t none, all;
        sigemptyset(&none);
        sigfillset(&all);
        int r = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        if (r == 0)
                r = posix_spawnattr_setsigmask(attributes, &none);
        if (r == 0)
                r = posix_spawnattr_setsigdefault(attributes, &all);
        if (r == 0)
                r = posix_spawnattr_setpgroup(attributes, 0);
        return r;
}

/* 0 or a positive errno. `output` is the end of the pipe that the process writes to. */
static int child_spawn(struct tr_child *child, const struct tr_child_options *options, int output) {
        char own[] = "TROUPE_FD=" "3";
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        TR_AUTO_FREE char **env = make_env(options->env, own);
        if (!env)
                return ENOMEM;
        int r = posix_spawn_file_actions_init(&actions);
        if (r != 0)
                return r;
        r = posix_spawnattr_init(&attributes);
        if (r == 0) {
                r = make_actions(options, output, &actions);
                if (r == 0)
                        r = make_attributes(&attributes);
                if (r == 0)
                        r = posix_spawnp(&child->pid, options->command[0], &actions, &attributes, options->command, env);
                posix_spawnattr_destroy(&attributes);
        }
        posix_spawn_file_actions_destroy(&actions);
        if (r != 0)
                child->pid = 0;
        return r;
}

static int child_watch(struct tr_child *child, struct event_base *base) {
        child->pidfd = pidfd_open(child->pid, 0);
        if (child->pidfd < 0)
                return tr_error_origin(-errno);
        fcntl(child->pidfd, F_SETFD, FD_CLOEXEC);
        child->ended_event = event_new(base, child->pidfd, EV_READ | EV_PERSIST, on_ended, child);
        child->output_event = event_new(base, child->output, EV_READ | EV_PERSIST, on_output, child);
        if (!child->ended_event || !child->output_event || event_add(child->ended_event, NULL) < 0 ||
            event_add(child->output_event, NULL) < 0)
                return tr_error_origin(-ENOMEM);
        return 0;
}

int tr_child_start(const struct tr_child_options *options, struct tr_child **ret_child) {
        int pipe_fds[2];
        struct tr_child *child = calloc(1, sizeof(*child));
        if (!child)
                return tr_error_origin(-ENOMEM);
        child->pidfd = child->output = -1;
        child->ended = options->ended;
        child->userdata = options->userdata;
        child->name = strdup(options->name);
        int r = !child->name ? -ENOMEM : pipe2(pipe_fds, O_CLOEXEC) < 0 ? -errno : 0;
        if (r < 0) {
                tr_child_free(child);
                return tr_error_origin(r);
        }
        child->output = pipe_fds[0];
        r = fcntl(child->output, F_SETFL, O_NONBLOCK) < 0 ? -errno : -child_spawn(child, options, pipe_fds[1]);
        close(pipe_fds[1]);
        if (r == 0)
                r = child_watch(child, tr_loop_base(options->loop));
        if (r < 0) {
                tr_child_free(child);
                return r; /* said by the caller, who knows what it was to be */
        }
        *ret_child = child;
        return 0;
}
