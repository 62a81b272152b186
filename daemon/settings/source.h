/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SETTINGS_SOURCE_H
#define TR_SETTINGS_SOURCE_H

#include <jansson.h>
#include <stddef.h>

#include "daemon/base/error.h"

struct tr_problems;

/* The text of a file of the configuration. */
struct tr_source {
        char *text; /* len bytes and a NUL */
        size_t len;
        const char *reason; /* why there is none: a sentence's end, static */
};

enum {
        TR_SOURCE_MISSING = 1,    /* there is no such file */
        TR_SOURCE_UNREADABLE = 2, /* there is, and it is no use */
};

/* Reads all of it. 0, TR_SOURCE_* with only the reason set, or a negative errno. */
TR_MUST_CHECK int tr_source_read(const char *file, struct tr_source *ret_source);
void tr_source_deinit(struct tr_source *source);

/* The document that such a text is. 0, TR_SOURCE_UNREADABLE with a problem, or a negative errno. */
TR_MUST_CHECK int tr_source_parse(const char *file, const char *text, size_t len, struct tr_problems *problems,
                                  json_t **ret_document);

#endif
