/* SPDX-License-Identifier: Apache-2.0 */
/* Which commands there are. */
#include <string.h>

#include "client/command/command.h"

const struct tr_command *const tr_commands[] = {
        &tr_cmd_spawn, &tr_cmd_pool,     &tr_cmd_send,    &tr_cmd_ask,       &tr_cmd_call,
        &tr_cmd_task,  &tr_cmd_serve,    &tr_cmd_done,
        &tr_cmd_stop,  &tr_cmd_find,     &tr_cmd_publish, &tr_cmd_unpublish, &tr_cmd_ls,
        &tr_cmd_info,  &tr_cmd_top,      &tr_cmd_events,  &tr_cmd_trace,     &tr_cmd_log,
        &tr_cmd_metrics, &tr_cmd_bench,  &tr_cmd_ping,    &tr_cmd_reload,    &tr_cmd_backup,
        &tr_cmd_shutdown,
        &tr_cmd_version, &tr_cmd_help,   &tr_cmd_complete,
        NULL,
};

const struct tr_command *tr_command_find(const char *name) {
        for (size_t i = 0; tr_commands[i]; i++)
                if (!strcmp(tr_commands[i]->name, name))
                        return tr_commands[i];
        return NULL;
}

const char *tr_subcommand_word(const struct tr_command *subcommand) {
        return strchr(subcommand->name, ' ') + 1;
}

const struct tr_command *tr_subcommand_find(const struct tr_command *command, const char *word) {
        for (size_t i = 0; command->subcommands && command->subcommands[i]; i++)
                if (!strcmp(tr_subcommand_word(command->subcommands[i]), word))
                        return command->subcommands[i];
        return NULL;
}
