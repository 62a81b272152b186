/* SPDX-License-Identifier: Apache-2.0 */
/* Everything wrong with a file is told at once, so that nobody mends it one start at a time. */
#include "config.h"

#include "daemon/settings/problem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/log.h"

int tr_problems_addv(struct tr_problems *problems, const char *file, int line, char *take_key, const char *format,
                     va_list arguments) {
        TR_AUTO_FREE char *key = take_key, *copy = strdup(file), *text = NULL;
        struct tr_problem *list;

        if (vasprintf(&text, format, arguments) < 0)
                text = NULL;
        list = reallocarray(problems->list, problems->count + 1, sizeof(*list));
        if (list)
                problems->list = list;
        if (!list || !copy || !text)
                return tr_error_origin(-ENOMEM);
        list[problems->count++] = (struct tr_problem){
                .file = tr_steal(copy), .line = line, .key = tr_steal(key), .text = tr_steal(text)
        };
        return 0;
}

int tr_problems_add(struct tr_problems *problems, const char *file, int line, char *take_key, const char *format, ...) {
        va_list arguments;
        int r;

        va_start(arguments, format);
        r = tr_problems_addv(problems, file, line, take_key, format, arguments);
        va_end(arguments);
        return r;
}

char *tr_problem_text(const struct tr_problem *problem) {
        char line[16] = "", *text;

        if (problem->line > 0)
                snprintf(line, sizeof(line), ":%d", problem->line);
        if (asprintf(&text, "%s%s: %s%s%s", problem->file, line, problem->key ? problem->key : "",
                     problem->key ? ": " : "", problem->text) < 0)
                return NULL;
        return text;
}

void tr_problems_log(const struct tr_problems *problems) {
        for (size_t i = 0; i < problems->count; i++) {
                TR_AUTO_FREE char *text = tr_problem_text(&problems->list[i]);

                tr_log(TR_LOG_WARNING, "%s", text ? text : "out of memory");
        }
}

void tr_problems_deinit(struct tr_problems *problems) {
        for (size_t i = 0; i < problems->count; i++) {
                free(problems->list[i].file);
                free(problems->list[i].key);
                free(problems->list[i].text);
        }
        free(problems->list);
        *problems = (struct tr_problems){ 0 };
}
