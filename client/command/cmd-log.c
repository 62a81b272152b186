/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log: the daemon's log, from here on, in the form that it has on a terminal.
 */
#include <stddef.h>

#include "client/command/command.h"
#include "client/command/follow.h"

static void print(const char *topic, const struct troupe_value *event) {
        tr_follow_put_time(event, "time");
        tr_follow_put_line(event);
}

static int run(struct tr_invocation *invocation, const void *chosen) {
        static const char *const topics[] = { "log", NULL };

        return tr_follow(invocation, topics, false, print);
}

const struct tr_command tr_cmd_log = {
        .name = "log",
        .usage = "",
        .summary = "follow the daemon's log",
        .details = "Lines from now on, at the level that the daemon is configured to log, until it is interrupted.\n"
                   "With -j each is a JSON object on a line.\n",
        .run = run,
};
