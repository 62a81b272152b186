/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete -- [WORD...]: for the shells' completion. The words are those of a line behind `troupe`, up to the cursor;
 * printed is what the last of them, which may be empty, can become: first a line that says what it is, `words` or
 * `files`, then a line for each word.
 *
 * Everything comes from the tables that the commands are run by, and from the daemon that the line speaks to. What the
 * daemon says was chosen by others and goes into a line that a shell will run: only words in which no shell sees
 * anything are offered. A shell waits for this, so it gives up soon.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/command/argument.h"
#include "client/command/command.h"
#include "client/command/link.h"
#include "client/troupe.h"

#define PATIENCE_SECONDS 2

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:"

struct completion {
        const char *word;           /* what is there of the last one */
        struct tr_invocation asked; /* the line's own */
        struct tr_next next;
};

static void offer(const struct completion *completion, const char *word, size_t len) {
        if (len >= strlen(completion->word) && !strncmp(word, completion->word, strlen(completion->word)))
                printf("%.*s\n", (int)len, word);
}

static void offer_foreign(const struct completion *completion, const char *word, size_t len) {
        for (size_t i = 0; i < len; i++)
                if (!word[i] || !strchr(PLAIN, word[i]))
                        return;
        if (len && *word != '-')
                offer(completion, word, len);
}

static void offer_all(const struct completion *completion, const char *const *words) {
        for (; words && *words; words++)
                offer(completion, *words, strlen(*words));
}

static void offer_commands(const struct completion *completion) {
        for (size_t i = 0; tr_commands[i]; i++)
                if (tr_commands[i]->summary)
                        offer(completion, tr_commands[i]->name, strlen(tr_commands[i]->name));
}

static void offer_subcommands(const struct completion *completion, const struct tr_command *command) {
        for (size_t i = 0; command && command->subcommands && command->subcommands[i]; i++) {
                const char *word = tr_subcommand_word(command->subcommands[i]);

                offer(completion, word, strlen(word));
        }
}

static void offer_table(const struct completion *completion, const struct tr_option *option) {
        for (; option && option->name; option++)
                offer(completion, option->name, strlen(option->name));
}

/* Asks the line's daemon. */
static int ask(struct completion *completion, const char *method, const char *param, struct tr_reply *reply) {
        struct tr_invocation *asked = &completion->asked;
        int status = tr_link_open(asked);

        if (status)
                return status;
        tr_link_be_plain(asked);
        return tr_link_wait(asked,
                            troupe_request_async(asked->troupe, method, tr_link_on_reply, reply, &reply->pending,
                                                 param ? "s" : "", param),
                            reply);
}

/* What is under one of the keys in each of the maps. */
static void offer_members(const struct completion *completion, const struct troupe_value *maps,
                          const char *const *keys) {
        struct troupe_value map, value;
        struct troupe_walk walk;
        const char *text;
        size_t len;

        if (troupe_walk_begin(&walk, maps))
                return;
        while (troupe_walk_next(&walk, NULL, &map) > 0)
                for (size_t i = 0; keys[i]; i++)
                        if (!troupe_value_get(&map, keys[i], &value) && !troupe_value_string(&value, &text, &len))
                                offer_foreign(completion, text, len);
}

static void offer_listed(struct completion *completion, const char *const *keys) {
        struct tr_reply reply = { 0 };

        if (!ask(completion, "list", NULL, &reply))
                offer_members(completion, &reply.value, keys);
        tr_reply_deinit(&reply);
}

/* The names of what the target, which the line names, has under the key: handlers, operations. */
static void offer_names_in(struct completion *completion, const char *key) {
        static const char *const keys[] = { "name", NULL };
        struct tr_reply reply = { 0 };
        struct troupe_value maps;

        if (!ask(completion, "info", completion->asked.words.operands[0], &reply) &&
            !troupe_value_get(&reply.value, key, &maps))
                offer_members(completion, &maps, keys);
        tr_reply_deinit(&reply);
}

static void offer_component(const struct completion *completion, const struct troupe_value *map) {
        struct troupe_value kind, name;
        const char *text;
        size_t len;

        if (troupe_value_get(map, "kind", &kind) || troupe_value_string(&kind, &text, &len) ||
            len != strlen("component") || memcmp(text, "component", len))
                return;
        if (!troupe_value_get(map, "name", &name) && !troupe_value_string(&name, &text, &len))
                offer_foreign(completion, text, len);
}

static void offer_components(struct completion *completion) {
        struct tr_reply reply = { 0 };
        struct troupe_value map;
        struct troupe_walk walk;

        if (!ask(completion, "list", NULL, &reply) && !troupe_walk_begin(&walk, &reply.value))
                while (troupe_walk_next(&walk, NULL, &map) > 0)
                        offer_component(completion, &map);
        tr_reply_deinit(&reply);
}

/* Tasks' ids. */
static void offer_tasks(struct completion *completion) {
        static const char *const keys[] = { "id", NULL };
        struct tr_reply reply = { 0 };

        if (!ask(completion, "tasks", NULL, &reply))
                offer_members(completion, &reply.value, keys);
        tr_reply_deinit(&reply);
}

static void offer_operand(struct completion *completion) {
        static const char *const targets[] = { "published", "handle", NULL }, *const names[] = { "published", NULL },
                                 *const actors[] = { "actor", NULL };
        static const struct {
                const char *operand;
                const char *const *keys; /* of what `list` says of each */
        } listed[] = { { "TARGET", targets }, { "NAME", names }, { "ACTOR", actors } };
        const struct tr_syntax *syntax = &completion->asked.command->syntax;
        const char *name = completion->next.name;
        unsigned int index = completion->next.operand;
        /* `publish NAME TARGET`: one that is free */
        bool is_new = index + 1 < TR_OPERANDS_MAX && syntax->operands[index + 1] && !strcmp(name, "NAME");

        offer_all(completion, syntax->choices);
        if (!strcmp(name, "COMMAND"))
                offer_commands(completion);
        if (!strcmp(name, "WORD"))
                offer_subcommands(completion, tr_command_find(completion->asked.words.operands[0]));
        if (completion->next.may_be_subcommand)
                offer_subcommands(completion, completion->asked.command);
        if (!strcmp(name, "TASK"))
                offer_tasks(completion);
        if (!strcmp(name, "HANDLER"))
                offer_names_in(completion, "handlers");
        if (!strcmp(name, "COMPONENT"))
                offer_components(completion);
        if (!strcmp(name, "OPERATION"))
                offer_names_in(completion, "operations");
        for (size_t i = 0; i < sizeof(listed) / sizeof(listed[0]); i++)
                if (!strcmp(name, listed[i].operand) && !is_new)
                        offer_listed(completion, listed[i].keys);
}

static void offer_options(const struct completion *completion) {
        if (completion->asked.command)
                offer_table(completion, completion->asked.command->syntax.options);
        offer_table(completion, tr_global_options);
}

static void complete(struct completion *completion) {
        bool is_option = completion->next.may_be_option && *completion->word == '-';

        puts(completion->next.kind == TR_NEXT_FILE && !is_option ? "files" : "words");
        if (is_option)
                offer_options(completion);
        if (completion->next.kind == TR_NEXT_ARG && *completion->word == '-')
                offer_all(completion, tr_argument_marks);
        if (completion->next.kind == TR_NEXT_COMMAND)
                offer_commands(completion);
        if (completion->next.kind == TR_NEXT_OPERAND && !is_option)
                offer_operand(completion);
}

static int run(struct tr_invocation *invocation, const void *chosen) {
        struct completion completion = { .word = "" };
        int count = invocation->words.raw_count, status;
        union {
                char bytes[TR_CHOSEN_MAX];
                max_align_t alignment;
        } options;

        alarm(PATIENCE_SECONDS);
        if (count)
                completion.word = invocation->words.raw[--count];
        status = tr_words_read_unfinished(&completion.asked, count, invocation->words.raw, &options, &completion.next);
        if (!status)
                complete(&completion);
        tr_link_close(&completion.asked);
        tr_words_deinit(&completion.asked.words);
        return status;
}

const struct tr_command tr_cmd_complete = {
        .name = "complete",
        .usage = "-- [WORD...]",
        .details = "What the last of the words of a command line can become, for the shells' completion.\n",
        .syntax = { .takes_words = true },
        .run = run,
};
