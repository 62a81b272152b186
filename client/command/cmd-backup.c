/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backup FILE: a copy of the daemon's store, which the daemon writes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/command/command.h"
#include "client/command/link.h"
#include "client/command/report.h"
#include "client/troupe.h"

/* The file as the daemon, which has another working directory, finds it: for free(). NULL: errno says why not. */
static char *absolute_path(const char *file) {
        char *here, *path;

        if (*file == '/')
                return strdup(file);
        here = getcwd(NULL, 0);
        if (!here)
                return NULL;
        if (asprintf(&path, "%s/%s", here, file) < 0)
                path = NULL;
        free(here);
        return path;
}

static int run(struct tr_invocation *invocation, const void *chosen) {
        char *path = absolute_path(invocation->words.operands[0]);
        struct tr_reply reply = { 0 };
        int status, r;

        if (!path)
                return tr_report_file(invocation, invocation->words.operands[0], -errno);
        status = tr_link_open(invocation);
        if (!status) {
                r = troupe_request_async(invocation->troupe, "backup", tr_link_on_reply, &reply, &reply.pending, "s", path);
                status = tr_link_wait(invocation, r, &reply);
        }
        tr_reply_deinit(&reply);
        free(path);
        return status;
}

const struct tr_command tr_cmd_backup = {
        .name = "backup",
        .usage = "FILE",
        .summary = "copy the daemon's store while it is in use",
        .details = "The daemon writes the file, as its own user, and replaces what is there once all of it is on disk.\n",
        .syntax = { .operands = { "FILE" }, .operands_min = 1 },
        .run = run,
};
