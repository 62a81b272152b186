/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace [ID]: calls of components, as they end; or those of one trace, as a tree: who was called by another stands below it, indented.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/command.h"
#include "client/command/follow.h"
#include "client/command/link.h"
#include "client/command/report.h"
#include "client/command/show.h"
#include "client/troupe.h"
#include "proto/code.h"

static void print_span(const char *topic, const struct troupe_value *event) {
        tr_follow_put_time(event, "time");
        tr_follow_put_span(event);
        (void)tr_follow_put(event, "trace", " (trace ", ")");
}

static int follow(struct tr_invocation *invocation) {
        static const char *const topics[] = { "trace", NULL };

        return tr_follow(invocation, topics, false, print_span);
}

/* A span of the answer, which it borrows from. */
struct node {
        struct troupe_value span;
        const char *id;
        size_t id_len;
        const char *parent; /* NULL: none */
        size_t parent_len;
        bool is_printed;
};

/* In the order in which they began. */
struct tree {
        struct node *nodes;
        size_t count;
};

/* Chains are shorter; what another daemon says is deeper is printed as if nobody had called it. */
#define DEPTH_MAX 64

static bool is_child(const struct node *node, const struct node *parent) {
        return node != parent && node->parent && parent->id && node->parent_len == parent->id_len &&
               !memcmp(node->parent, parent->id, parent->id_len);
}

/* Whether who called it is there: not where that has not ended yet, or was no call of a component. */
static bool has_parent(const struct tree *tree, const struct node *node) {
        for (size_t i = 0; i < tree->count; i++)
                if (is_child(node, &tree->nodes[i]))
                        return true;
        return false;
}

/* It, and below it all that it called. */
static void print_below(struct tree *tree, struct node *node, int depth) {
        node->is_printed = true;
        tr_follow_put_time(&node->span, "began");
        printf("%*s", 2 * depth, "");
        tr_follow_put_span(&node->span);
        putchar('\n');
        for (size_t i = 0; depth < DEPTH_MAX && i < tree->count; i++)
                if (!tree->nodes[i].is_printed && is_child(&tree->nodes[i], node))
                        print_below(tree, &tree->nodes[i], depth + 1);
}

static void find_text(const struct troupe_value *map, const char *key, const char **ret_text, size_t *ret_len) {
        struct troupe_value value;

        if (!troupe_value_get(map, key, &value))
                (void)troupe_value_string(&value, ret_text, ret_len);
}

/* 0 or a negative errno. */
static int read_tree(struct tree *tree, const struct troupe_value *answer) {
        struct troupe_value span;
        struct troupe_walk walk;
        int r = troupe_walk_begin(&walk, answer);

        /* a count from outside sizes nothing before there are as many bytes */
        if (r || walk.is_map || walk.left > answer->size)
                return -EBADMSG;
        tree->nodes = calloc(walk.left + 1, sizeof(*tree->nodes));
        if (!tree->nodes)
                return -ENOMEM;
        while ((r = troupe_walk_next(&walk, NULL, &span)) > 0) {
                struct node *node = &tree->nodes[tree->count++];

                node->span = span;
                find_text(&span, "span", &node->id, &node->id_len);
                find_text(&span, "parent", &node->parent, &node->parent_len);
        }
        return r;
}

static int print_tree(struct tr_invocation *invocation, const struct troupe_value *answer) {
        struct tree tree = { 0 };
        int r = read_tree(&tree, answer);

        for (size_t i = 0; !r && i < tree.count; i++)
                if (!has_parent(&tree, &tree.nodes[i]))
                        print_below(&tree, &tree.nodes[i], 0);
        for (size_t i = 0; !r && i < tree.count; i++)
                if (!tree.nodes[i].is_printed)
                        print_below(&tree, &tree.nodes[i], 0);
        free(tree.nodes);
        return r ? tr_report_errno(invocation, r) : tr_show_end(invocation);
}

static int report_nothing(const struct tr_invocation *invocation) {
        struct tr_problem problem = { 0 };
        int status;

        tr_problem_say(&problem, TR_EXIT_NOT_FOUND, tr_code_text(TR_CODE_NOT_FOUND),
                       "no call of this trace is known here: it may have ended too long ago, or not yet");
        status = tr_problem_report(&problem, invocation, 0);
        tr_problem_deinit(&problem);
        return status;
}

static int list(struct tr_invocation *invocation, const char *id) {
        struct tr_reply reply = { 0 };
        int status = tr_link_open(invocation), r;
        size_t count = 1;

        if (!status) {
                tr_link_be_plain(invocation);
                r = troupe_request_async(invocation->troupe, "trace", tr_link_on_reply, &reply, &reply.pending, "{ss}", "id", id);
                status = tr_link_wait(invocation, r, &reply);
        }
        if (!status)
                (void)troupe_value_count(&reply.value, &count);
        if (!status && count == 0)
                status = report_nothing(invocation);
        else if (!status && invocation->json)
                status = tr_show_answer(invocation, &reply.value, TR_SHOW_JSON);
        else if (!status)
                status = print_tree(invocation, &reply.value);
        tr_reply_deinit(&reply);
        return status;
}

static int run(struct tr_invocation *invocation, const void *chosen) {
        const char *id = invocation->words.operands[0];

        return id ? list(invocation, id) : follow(invocation);
}

const struct tr_command tr_cmd_trace = {
        .name = "trace",
        .usage = "[ID]",
        .summary = "follow calls of components, or show those of one trace",
        .details = "Without ID calls are printed as they end, from now on, until it is interrupted. With -j each is a\n"
                   "JSON object on a line.\n"
                   "\n"
                   "  ID            of a trace: 32 hexadecimal digits, or the traceparent of a call. Its calls are\n"
                   "                printed as a tree, below those that made them; with -j as one JSON array.\n"
                   "                The daemon keeps the 4096 that ended last.\n",
        .syntax = { .operands = { "ID" } },
        .run = run,
};
