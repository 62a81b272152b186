/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
        INPUT,
        OUTPUT,
        ERROR,
        ENDED,
};

#define READ_BYTES 65536

static void close_fd(int *fd) {
        if (*fd >= 0)
                close(*fd);
        *fd = -1;
}

/* Both ends of three pipes: [0] is the process's, [1] this side's, which does not block. */
static int make_pipes(int pipes[3][2]) {
        for (int i = 0; i < 3; i++) {
                int fds[2];

                if (pipe2(fds, O_CLOEXEC))
                        return -errno;
                pipes[i][0] = fds[i == INPUT ? 0 : 1];
                pipes[i][1] = fds[i == INPUT ? 1 : 0];
                if (fcntl(pipes[i][1], F_SETFL, O_NONBLOCK))
                        return -errno;
        }
        return 0;
}

static char **join_env(char *const *more) {
        size_t own = 0, others = 0;
        char **env;

        while (environ && environ[own])
                own++;
        while (more[others])
                others++;
        env = calloc(own + others + 1, sizeof(*env));
        if (!env)
                return NULL;
        /* the first of a name is what programs see */
        memcpy(env, more, others * sizeof(*env));
        if (own)
                memcpy(env + others, environ, own * sizeof(*env));
        return env;
}

/* 0 or a positive errno. */
static int prepare(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes, int pipes[3][2]) {
        sigset_t none, all;
        int r = 0;

        sigemptyset(&none);
        sigfillset(&all);
        for (int i = 0; !r && i < 3; i++)
                r = posix_spawn_file_actions_adddup2(actions, pipes[i][0], i);
        if (!r)
                r = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        if (!r)
                r = posix_spawnattr_setsigmask(attributes, &none);
        if (!r)
                r = posix_spawnattr_setsigdefault(attributes, &all);
        return r ? r : posix_spawnattr_setpgroup(attributes, 0);
}

/* 0 or a positive errno. */
static int spawn(struct tr_job *job, const char *command, char *const *env, int pipes[3][2]) {
        char *const argv[] = { (char *)"sh", (char *)"-c", (char *)command, NULL };
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        char **joined = join_env(env);
        int r = joined ? posix_spawn_file_actions_init(&actions) : ENOMEM;

        if (!r) {
                r = posix_spawnattr_init(&attributes);
                if (!r) {
                        r = prepare(&actions, &attributes, pipes);
                        if (!r)
                                r = posix_spawn(&job->pid, "/bin/sh", &actions, &attributes, argv, joined);
                        posix_spawnattr_destroy(&attributes);
                }
                posix_spawn_file_actions_destroy(&actions);
        }
        free(joined);
        return r;
}

int tr_job_start(struct tr_job *job, const char *command, char *const *env, char *take_input, size_t input_len) {
        int pipes[3][2] = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
        int r;

        *job = (struct tr_job){ .input = take_input, .input_len = input_len, .fds = { -1, -1, -1, -1 } };
        r = make_pipes(pipes);
        if (!r)
                r = -spawn(job, command, env, pipes);
        for (int i = 0; i < 3; i++) {
                close_fd(&pipes[i][0]);
                job->fds[i] = pipes[i][1];
        }
        if (!r) {
                job->fds[ENDED] = pidfd_open(job->pid, 0);
                r = job->fds[ENDED] < 0 ? -errno : 0;
                if (r)
                        tr_job_kill(job, SIGKILL);
        }
        if (r) {
                job->is_over = job->pid <= 0;
                tr_job_deinit(job);
        }
        return r;
}

void tr_job_poll(const struct tr_job *job, struct pollfd *ret_fds) {
        for (int i = 0; i < TR_JOB_FDS; i++)
                ret_fds[i] = (struct pollfd){ .fd = job->fds[i], .events = i == INPUT ? POLLOUT : POLLIN };
}

/* What is not read is the command's own affair. */
static void send_input(struct tr_job *job) {
        ssize_t n = write(job->fds[INPUT], job->input + job->input_sent, job->input_len - job->input_sent);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n > 0)
                job->input_sent += (size_t)n;
        if (n < 0 || job->input_sent == job->input_len)
                close_fd(&job->fds[INPUT]);
}

/* 1: there may be more; 0: not now; -ENOMEM. */
static int read_output(struct tr_job *job) {
        ssize_t n;

        if (tr_writer_reserve(&job->output, READ_BYTES))
                return -ENOMEM;
        n = read(job->fds[OUTPUT], job->output.data + job->output.len, READ_BYTES);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n <= 0) {
                close_fd(&job->fds[OUTPUT]);
                return 0;
        }
        job->output.len += (size_t)n;
        return 1;
}

static void keep_line(struct tr_job *job, const char *text, size_t len) {
        for (size_t i = 0; i < len; i++) {
                if (text[i] == '\n') {
                        job->line_over = true;
                        continue;
                }
                if (job->line_over)
                        job->line_len = 0;
                job->line_over = false;
                if (job->line_len < sizeof(job->line))
                        job->line[job->line_len++] = text[i];
        }
}

static int read_error(struct tr_job *job) {
        char text[4096];
        ssize_t n = read(job->fds[ERROR], text, sizeof(text));

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n <= 0) {
                close_fd(&job->fds[ERROR]);
                return 0;
        }
        keep_line(job, text, (size_t)n);
        for (size_t at = 0; at < (size_t)n;) {
                ssize_t written = write(STDERR_FILENO, text + at, (size_t)n - at);

                if (written < 0 && errno != EINTR)
                        break; /* nobody reads it: the last line is kept all the same */
                at += written > 0 ? (size_t)written : 0;
        }
        return 1;
}

/* What is in the pipes when the process has ended is the last of it, whoever else may hold them open. */
static int finish(struct tr_job *job) {
        int r = 0;

        if (waitpid(job->pid, &job->status, WNOHANG) != job->pid)
                return 0;
        job->is_over = true;
        while (job->fds[OUTPUT] >= 0 && (r = read_output(job)) > 0)
                ;
        while (job->fds[ERROR] >= 0 && read_error(job) > 0)
                ;
        return r;
}

int tr_job_process(struct tr_job *job, const struct pollfd *fds) {
        int r = 0;

        if (fds[INPUT].revents && job->fds[INPUT] >= 0)
                send_input(job);
        if (fds[OUTPUT].revents && job->fds[OUTPUT] >= 0)
                r = read_output(job);
        if (fds[ERROR].revents && job->fds[ERROR] >= 0)
                (void)read_error(job);
        if (r >= 0 && fds[ENDED].revents)
                r = finish(job);
        return r < 0 ? r : 0;
}

void tr_job_kill(struct tr_job *job, int signal) {
        if (!job->is_over)
                kill(-job->pid, signal);
}

void tr_job_deinit(struct tr_job *job) {
        while (!job->is_over && waitpid(job->pid, &job->status, 0) < 0 && errno == EINTR)
                ;
        for (int i = 0; i < TR_JOB_FDS; i++)
                close_fd(&job->fds[i]);
        free(job->input);
        tr_writer_deinit(&job->output);
}
