/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_WINDOW_H
#define TR_COMMAND_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How much may be sent to an actor that is not known to have handled what it was sent before.
 *
 * That a message is in the mailbox says nothing of when it is taken out again, so a sender that is faster than the
 * actor overruns it sooner or later. Whoever sends therefore asks for a sign now and then, a *mark* behind what was
 * sent, which the actor answers when it comes to it: what stood before it is out of the mailbox. At most half of the
 * mailbox is ever taken up, in two windows with a mark behind each, so that the actor has work while the mark of the
 * first is on its way back. The other half is for others, and for the marks, each of which is a message too.
 *
 * Only counting is here; what a mark is belongs to send-lines.c.
 */

#define TR_WINDOW_MARKS_MAX 4
/* What is larger may be refused for its size alone, so nothing is sent behind it before that is known. */
#define TR_WINDOW_LARGE_BYTES (1 << 20)

struct tr_amount {
        uint64_t messages;
        uint64_t bytes;
};

struct tr_window {
        struct tr_amount limit;                      /* half of the mailbox, at least one message */
        struct tr_amount waiting;                    /* sent, and not known to be handled */
        struct tr_amount unmarked;                   /* of those, behind the last mark */
        struct tr_amount marks[TR_WINDOW_MARKS_MAX]; /* what each of the unanswered marks stands for, oldest first */
        unsigned int marks_count;
};

/* For a mailbox of so many messages and bytes; 0: not known, and then one message at a time is certain not to be too
 * many. */
void tr_window_init(struct tr_window *window, uint64_t messages, uint64_t bytes);

/* Whether one more message of so many bytes may be sent. One that is larger than the window goes alone. */
bool tr_window_admits(const struct tr_window *window, uint64_t bytes);
/* Whether it is so large that it goes alone. */
bool tr_window_is_large(const struct tr_window *window, uint64_t bytes);
void tr_window_sent(struct tr_window *window, uint64_t bytes);

/* Whether a mark is due: a window is full, or `is_blocked` (the next message must wait) and nothing else will open
 * one. */
bool tr_window_wants_mark(const struct tr_window *window, bool is_blocked);
void tr_window_marked(struct tr_window *window);
/* A mark was answered: what the oldest stood for is handled. */
void tr_window_handled(struct tr_window *window);

#endif
