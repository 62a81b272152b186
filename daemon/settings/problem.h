/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SETTINGS_PROBLEM_H
#define TR_SETTINGS_PROBLEM_H

#include <stdarg.h>
#include <stdio.h>

#include "daemon/base/error.h"

/* What there is to say about a configuration file, in the order it was found. */
struct tr_problem {
        char *file;
        int line;   /* 0: of no line */
        char *key;  /* NULL: of no key */
        char *text; /* a sentence without its end */
};

struct tr_problems {
        struct tr_problem *list;
        size_t count;
};

/* Adds one; takes the key (NULL: none). 0 or -ENOMEM. */
TR_MUST_CHECK int tr_problems_addv(struct tr_problems *problems, const char *file, int line, char *take_key,
                                   const char *format, va_list arguments) __attribute__((format(printf, 5, 0)));
TR_MUST_CHECK int tr_problems_add(struct tr_problems *problems, const char *file, int line, char *take_key,
                                  const char *format, ...) __attribute__((format(printf, 5, 6)));
/* "FILE:LINE: KEY: TEXT", the caller's; NULL where memory is short. */
char *tr_problem_text(const struct tr_problem *problem);
/* Each as a warning in the log. */
void tr_problems_log(const struct tr_problems *problems);
void tr_problems_deinit(struct tr_problems *problems);

#endif
