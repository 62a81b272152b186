/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_JOB_H
#define TR_COMMAND_JOB_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "proto/value.h"

/*
 * One process of a shell's command, for one call: it is given the input, what it writes is collected, and its end is waited for. What it
 * says on standard error goes to that of the program, and the last line of it is kept.
 */
#define TR_JOB_FDS 4
#define TR_JOB_LINE_MAX 1024

struct tr_job {
        pid_t pid;
        int fds[TR_JOB_FDS]; /* input, output, error, and one that is readable when the process has ended; -1: closed */
        char *input;
        size_t input_len;
        size_t input_sent;
        struct tr_writer output;
        char line[TR_JOB_LINE_MAX]; /* the last one of standard error that is not empty */
        size_t line_len;
        bool line_over;
        bool is_over;
        int status; /* then: as waitpid() has it */
};

/* Starts `sh -c command` with "NAME=value" texts beside the environment (NULL-terminated), in a process group of its own. Takes the
 * input. 0 or a negative errno, and then there is nothing to deinit. */
int tr_job_start(struct tr_job *job, const char *command, char *const *env, char *take_input, size_t input_len);
/* What to poll for: always TR_JOB_FDS. */
void tr_job_poll(const struct tr_job *job, struct pollfd *ret_fds);
/* Does what is ready. 0 or -ENOMEM. */
int tr_job_process(struct tr_job *job, const struct pollfd *fds);
/* Ends it and all that it started. */
void tr_job_kill(struct tr_job *job, int signal);
/* Waits for it where it is not over. */
void tr_job_deinit(struct tr_job *job);

#endif
