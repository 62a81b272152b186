/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The troupe command: finds the command, has its words read, runs it, and exits with what it says.
 */
#include <stddef.h>

#include "client/command/command.h"
#include "client/command/link.h"
#include "client/command/report.h"
#include "client/command/show.h"

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
                return tr_report_no_command(invocation, argv[at]);
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
