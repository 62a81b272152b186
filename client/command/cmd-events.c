/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events [TOPIC...]: what happens in the daemon, from here on.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "client/command/command.h"
#include "client/command/follow.h"

/* Those of no topic of one's own choosing: the log has a command of its own. */
static const char *const default_topics[] = { "lifecycle", "refused", "trace", "task", NULL };

static const char *const all_topics[] = { "lifecycle", "refused", "log", "trace", "task", NULL };

static void print_slow(const struct troupe_value *event) {
        struct troupe_value running;
        int64_t ms = 0;

        if (!troupe_value_get(event, "running", &running))
                (void)troupe_value_int(&running, &ms);
        if (!tr_follow_put(event, "handler", ": ", NULL))
                fputs(": its code", stdout);
        printf(" has been running for %" PRId64 ".%03d s", ms / 1000, (int)(ms % 1000));
        (void)tr_follow_put(event, "traceback", "\n    ", NULL);
}

/* Whose error says the same again. */
static bool is_killed(const struct troupe_value *event) {
        struct troupe_value what;
        const char *text;
        size_t len;

        return !troupe_value_get(event, "event", &what) && !troupe_value_string(&what, &text, &len) &&
               len == strlen("killed") && !memcmp(text, "killed", len);
}

static void print_lifecycle(const struct troupe_value *event) {
        struct troupe_value part;

        (void)tr_follow_put_actor(event, "name", NULL);
        (void)tr_follow_put(event, "slot", " slot ", NULL);
        if (!troupe_value_get(event, "running", &part))
                print_slow(event);
        if (!troupe_value_get(event, "error", &part) && !is_killed(event)) {
                (void)tr_follow_put(&part, "code", ": ", NULL);
                (void)tr_follow_put(&part, "message", ": ", NULL);
        }
        if (!troupe_value_get(event, "by", &part))
                tr_follow_put_client(&part, "uid", "pid");
}

/* "refused tally[1a2b3c4d].bump: mailbox-full: the mailbox is full"; a notification without a target by its method. */
static void print_refused(const struct troupe_value *event) {
        struct troupe_value by;

        if (tr_follow_put_actor(event, "name", NULL) || tr_follow_put(event, "target", NULL, NULL))
                (void)tr_follow_put(event, "handler", ".", NULL);
        else
                (void)tr_follow_put(event, "method", NULL, NULL);
        (void)tr_follow_put(event, "code", ": ", NULL);
        (void)tr_follow_put(event, "message", ": ", NULL);
        if (!troupe_value_get(event, "by", &by))
                tr_follow_put_client(&by, "uid", "pid");
}

/* "parked media.streams.reopen 019a…: fault: it broke, attempt 16" */
static void print_task(const struct troupe_value *event) {
        struct troupe_value part;
        int64_t attempt;

        (void)tr_follow_put(event, "component", NULL, NULL);
        (void)tr_follow_put(event, "operation", ".", NULL);
        (void)tr_follow_put(event, "id", " ", NULL);
        if (!troupe_value_get(event, "cause", &part)) {
                (void)tr_follow_put(&part, "code", ": ", NULL);
                (void)tr_follow_put(&part, "message", ": ", NULL);
        }
        if (!troupe_value_get(event, "attempt", &part) && !troupe_value_int(&part, &attempt) && attempt > 0)
                printf(", attempt %" PRId64, attempt);
}

static void print(const char *topic, const struct troupe_value *event) {
        tr_follow_put_time(event, "time");
        /* what happened, where the topic says more than one thing */
        if (!tr_follow_put(event, "event", NULL, " "))
                printf("%s ", topic);
        if (!strcmp(topic, "refused"))
                print_refused(event);
        else if (!strcmp(topic, "log"))
                tr_follow_put_line(event);
        else if (!strcmp(topic, "trace"))
                tr_follow_put_span(event);
        else if (!strcmp(topic, "task"))
                print_task(event);
        else
                print_lifecycle(event);
}

static int run(struct tr_invocation *invocation, const void *chosen) {
        const char *topics[TR_OPERANDS_MAX + 1] = { 0 };
        const char *const *operands = invocation->words.operands;
        size_t count = 0;

        for (; count < TR_OPERANDS_MAX && operands[count]; count++)
                topics[count] = operands[count];
        return tr_follow(invocation, count ? topics : default_topics, true, print);
}

const struct tr_command tr_cmd_events = {
        .name = "events",
        .usage = "[TOPIC...]",
        .summary = "follow what happens in the daemon",
        .details = "  TOPIC         lifecycle   actors start, stop, fault, are killed, ...\n"
                   "                refused     messages are dropped\n"
                   "                log         lines of the log\n"
                   "                trace       calls of components have ended\n"
                   "                task        tasks are accepted, run, are over or parked\n"
                   "                All but log where none is given.\n"
                   "\n"
                   "From now on, until it is interrupted. With -j each event is a JSON object on a line.\n",
        .syntax = { .operands = { "TOPIC", "TOPIC", "TOPIC", "TOPIC", "TOPIC" }, .choices = all_topics },
        .run = run,
};
