/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help [COMMAND [WORD]].
 */
#include <stdio.h>

#include "client/command/command.h"
#include "client/command/report.h"

static const char globals[] = "  -S SOCKET     the daemon's socket\n"
                              "  --user        the user's own daemon\n"
                              "  --system      the system's\n"
                              "  -j            always print JSON\n"
                              "  -t T          give up after this time (milliseconds, or with ms, s, m, h, d)\n";

static const char arguments[] = "An ARG that begins with {, [ or \" is JSON; true, false, null and JSON's numbers are "
                                "those; anything else is a string.\n"
                                "  -s TEXT       a string whatever it looks like (in scripts always: -s \"$v\")\n"
                                "  --json FILE   JSON from a file (-: standard input)\n"
                                "  --bin FILE    bytes from a file\n";

static void help_on_all(void) {
        puts("usage: troupe [-S SOCKET | --user | --system] [-j] [-t T] COMMAND ...\n");
        for (size_t i = 0; tr_commands[i]; i++)
                if (tr_commands[i]->summary)
                        printf("  %-13s %s\n", tr_commands[i]->name, tr_commands[i]->summary);
        printf("\nOptions, before COMMAND or behind it:\n%s\n", globals);
        puts("`troupe help COMMAND` says more; so does troupe(1).");
}

void tr_help(const struct tr_command *command) {
        if (!command) {
                help_on_all();
                return;
        }
        printf("usage: troupe %s%s%s\n", command->name, *command->usage ? " " : "", command->usage);
        if (command->summary)
                printf("\n%s\n", command->summary);
        for (size_t i = 0; command->subcommands && command->subcommands[i]; i++)
                printf("%s  %-13s %s\n", i ? "" : "\nOr, where the first word is one of these:\n",
                       tr_subcommand_word(command->subcommands[i]), command->subcommands[i]->summary);
        if (command->details)
                printf("\n%s", command->details);
        if (command->syntax.takes_args)
                printf("\n%s", arguments);
}

static int run(struct tr_invocation *invocation, const void *chosen) {
        const char *name = invocation->words.operands[0], *word = invocation->words.operands[1];
        const struct tr_command *command = name ? tr_command_find(name) : NULL;

        if (name && !command)
                return tr_report_no_command(invocation, name);
        if (word && !(command = tr_subcommand_find(command, word)))
                return tr_report_usage(invocation, "there is no command `%s %s`", name, word);
        tr_help(command);
        return TR_EXIT_DONE;
}

const struct tr_command tr_cmd_help = {
        .name = "help",
        .usage = "[COMMAND [WORD]]",
        .summary = "say what the commands do",
        .syntax = { .operands = { "COMMAND", "WORD" } },
        .run = run,
};
