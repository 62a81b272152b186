/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The troupe command: finds the command, has its words read, runs it, and exits with what it says.
 */
#include <stdio.h>
#include <string.h>

#include "client/command/command.h"
#include "client/command/link.h"
#include "client/command/report.h"
#include "client/command/show.h"

const struct tr_command *const tr_commands[] = {
        &tr_cmd_spawn, &tr_cmd_pool,    &tr_cmd_send,      &tr_cmd_ask,     &tr_cmd_done, &tr_cmd_stop,
        &tr_cmd_find,  &tr_cmd_publish, &tr_cmd_unpublish, &tr_cmd_ls,      &tr_cmd_info, &tr_cmd_events,
        &tr_cmd_log,   &tr_cmd_ping,    &tr_cmd_shutdown,  &tr_cmd_version, &tr_cmd_help, NULL,
};

const struct tr_command *tr_command_find(const char *name) {
        for (size_t i = 0; tr_commands[i]; i++)
                if (!strcmp(tr_commands[i]->name, name))
                        return tr_commands[i];
        return NULL;
}

static int run_command(struct tr_invocation *invocation, int argc, char **argv) {
        union {
                char bytes[TR_CHOSEN_MAX];
                max_align_t alignment;
        } chosen;
        int status = tr_words_read(invocation, argc, argv, &chosen);

        if (status)
                return status;
        if (invocation->words.wants_help) {
                tr_help(invocation->command);
                return TR_EXIT_DONE;
        }
        return invocation->command->run(invocation, &chosen);
}

static int run(struct tr_invocation *invocation, int argc, char **argv) {
        int at = tr_words_read_globals(invocation, argc, argv);

        if (at < 0)
                return TR_EXIT_USAGE;
        if (invocation->words.wants_help) {
                tr_help(NULL);
                return TR_EXIT_DONE;
        }
        if (at >= argc)
                return tr_report_usage(invocation, "no command is given");
        invocation->command = tr_command_find(argv[at]);
        if (!invocation->command)
                return tr_report_usage(invocation, "there is no command `%s`", argv[at]);
        return run_command(invocation, argc - at - 1, argv + at + 1);
}

int main(int argc, char **argv) {
        struct tr_invocation invocation = { 0 };
        int status = run(&invocation, argc, argv), end;

        end = tr_show_end(&invocation);
        tr_link_close(&invocation);
        tr_words_deinit(&invocation.words);
        return status ? status : end;
}
