/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_CHILD_H
#define TR_IO_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/base/error.h"

struct tr_child;
struct tr_loop;

/*
 * A process that the daemon starts: in a process group of its own, with one descriptor, whose number is in TROUPE_FD. What it writes
 * to its standard output and error goes to the log, line by line. It runs as the daemon does; it has no other descriptor of
 * the daemon's, and no signal blocked or ignored.
 *
 * All of it is for the loop thread.
 */
struct tr_child_options {
        struct tr_loop *loop;
        const char *name;       /* in the log; copied */
        char *const *command;   /* NULL-terminated; the program is looked for as the shell does */
        const char *cwd;        /* NULL: / */
        char *const *env;       /* "NAME=value" beside the daemon's own, over which they win; NULL-terminated, or NULL */
        int fd;                 /* given to the process; the caller's to close */
        /* It has ended: as waitpid() has it. The child is to be freed then, in the call or later. Never from tr_child_start(). */
        void (*ended)(void *userdata, int status);
        void *userdata;
};

/* 0 or a negative errno: ENOENT and its like are those of the program that could not be run. */
TR_MUST_CHECK int tr_child_start(const struct tr_child_options *options, struct tr_child **ret_child);
pid_t tr_child_pid(const struct tr_child *child);
/* Sends a signal to all of its process group, while it has not ended. */
void tr_child_signal(struct tr_child *child, int signal);
/* NULL is fine. A process that has not ended is killed, and waited for. */
void tr_child_free(struct tr_child *child);

/* What became of it, for people: "exited with status 3", "was killed by SIGKILL". */
void tr_child_status_text(int status, char *ret_text, size_t size);

#endif
