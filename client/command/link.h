/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_LINK_H
#define TR_COMMAND_LINK_H

#include <poll.h>
#include <stdbool.h>

#include "client/command/report.h"
#include "client/troupe.h"

struct tr_invocation;

/*
 * The command's connection, and waiting on it.
 */

/* Connects and says hello. 0, or the exit code, and a message was printed. */
int tr_link_open(struct tr_invocation *invocation);
/* From here on handles come as their text and nothing comes in a type that JSON has not: for what programs read of
 * the daemon. */
void tr_link_be_plain(struct tr_invocation *invocation);
void tr_link_close(struct tr_invocation *invocation);

enum tr_step {
        TR_STEP_DONE,        /* something happened, or the time has passed */
        TR_STEP_INTERRUPTED, /* once per interrupt */
        TR_STEP_OVER,        /* the connection is over, and every callback has run */
};

/* Waits for the connection, for `other` (NULL: nothing else; its revents are set), or for a time (-1: none), then
 * runs what is complete. */
enum tr_step tr_link_step(struct tr_invocation *invocation, struct pollfd *other, int timeout_ms);

/* The same, for as many others as there are, each as poll(2) has them. */
enum tr_step tr_link_step_with(struct tr_invocation *invocation, struct pollfd *others, size_t count, int timeout_ms);

/* A request and its answer: pass tr_link_on_reply, the reply and &reply.pending to a call with a callback. */
struct tr_reply {
        struct troupe_pending *pending;
        bool is_done;
        struct tr_problem problem;
        struct troupe_value value; /* its own copy; empty where there is a problem */
};

void tr_link_on_reply(struct troupe *troupe, int result, const struct troupe_value *answer, void *userdata);
/*
 * Waits for the reply. `r` is what the call answered that was to send the request. An interrupt takes the request
 * back. 0 with the value, or the exit code, and a message was printed.
 */
int tr_link_wait(struct tr_invocation *invocation, int r, struct tr_reply *reply);
void tr_reply_deinit(struct tr_reply *reply);

/* Takes back those of the replies that nobody has answered, and waits, a second at most, for what the daemon says to
 * that. */
void tr_link_take_back(struct tr_invocation *invocation, struct tr_reply *const *replies, size_t count);

#endif
