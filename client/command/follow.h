/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_FOLLOW_H
#define TR_COMMAND_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>

#include "client/troupe.h"

struct tr_invocation;

/*
 * Following what happens in the daemon: subscribing to topics, and printing each event as it comes.
 */

/* Prints one event for people, without the line's end. */
typedef void tr_follow_print(const char *topic, const struct troupe_value *event);

/* Until it is interrupted, or the daemon goes; answers the exit code. The topics end with NULL. With -j each event is printed as
 * an object on a line of its own, with its topic in it where `says_topic`. */
int tr_follow(struct tr_invocation *invocation, const char *const *topics, bool says_topic, tr_follow_print *print);

/* For who prints. Nothing that is printed by these reaches a terminal as a control sequence. */

/* The time of day here of what is under a key (an event's own is `time`), and a space. */
void tr_follow_put_time(const struct troupe_value *event, const char *key);
/* What is under a key, with something before it and behind it (NULL: nothing). False, and nothing is printed, where it is no text. */
bool tr_follow_put(const struct troupe_value *event, const char *key, const char *before, const char *behind);
/* Which actor it is about, "name[1a2b3c4d]", with something behind it; what is under `key` is its name. As above. */
bool tr_follow_put_actor(const struct troupe_value *event, const char *key, const char *behind);
/* " (uid 1000, pid 77)", where it is known. */
void tr_follow_put_client(const struct troupe_value *map, const char *uid_key, const char *pid_key);

/* A call that has ended: "media.streams.create[left]: ok, 0.012 ms queued, 1.204 ms run (uid 1000, pid 77)". */
void tr_follow_put_span(const struct troupe_value *span);

/* A line of the log: "warning: name[1a2b3c4d]: text (uid 1000, pid 77)". */
void tr_follow_put_line(const struct troupe_value *event);

#endif
