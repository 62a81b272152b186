/* SPDX-License-Identifier: Apache-2.0 */
/*
 * version: this program's own; no daemon is needed.
 */
#include "client/command/command.h"
#include "client/command/show.h"
#include "config.h"

static int run(struct tr_invocation *invocation, const void *chosen) {
        return tr_show_text(invocation, PACKAGE_VERSION);
}

const struct tr_command tr_cmd_version = {
        .name = "version",
        .usage = "",
        .summary = "print the version of this program",
        .run = run,
};
