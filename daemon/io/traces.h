/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_TRACES_H
#define TR_IO_TRACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/core/trace.h"
#include "proto/code.h"
#include "proto/limits.h"
#include "proto/value.h"

/*
 * The spans that ended last: a ring of so many, made at once, so that a span costs no memory. Any thread puts them in; they are
 * read by their number, by the loop for whoever asks (method/trace.c) and by the thread that writes the file (daemon/watch). Who reads too
 * late finds the older ones gone.
 */
#define TR_TRACES_KEPT 4096
/* Bytes of a failure's message that are kept. */
#define TR_SPAN_MESSAGE_MAX 255

/* How a call ended. Texts are cut where they are longer, and end with a NUL; an empty one is none. */
struct tr_span_record {
        uint64_t number; /* in the order in which they ended, from 1 */
        uint8_t trace[16];
        uint8_t span[8];
        uint8_t parent[8]; /* all zero: it is the first */
        uint8_t flags;
        uint32_t depth;
        char component[TR_NAME_MAX + 1];
        char operation[TR_NAME_MAX + 1];
        char instance[TR_NAME_MAX + 1]; /* who answered it last */
        uint32_t uid;                   /* the caller's */
        int32_t pid;                    /* 0: not known */
        uint32_t attempt;
        int64_t began_ns; /* since 1970; it took queued_ns + run_ns */
        uint64_t queued_ns;
        uint64_t run_ns;
        bool failed;
        enum tr_code code; /* where it failed */
        char message[TR_SPAN_MESSAGE_MAX + 1];
};

struct tr_traces;

/* 0 or a negative errno. */
TR_MUST_CHECK int tr_traces_new(struct tr_traces **ret_traces);
/* No other thread uses it. NULL is fine. */
void tr_traces_free(struct tr_traces *traces);

/* Any thread: keeps a span, and writes the record of it. */
void tr_traces_put(struct tr_traces *traces, const struct tr_span_news *news, struct tr_span_record *ret_record);
/* The number of the span that ended last; 0: none has. Any thread. */
uint64_t tr_traces_last(struct tr_traces *traces);
/* Copies those numbered `from` and later, at most max, the oldest first; those before the first number are gone. Answers how many. Any
 * thread. */
size_t tr_traces_read(struct tr_traces *traces, uint64_t from, struct tr_span_record *records, size_t max);

/* Which spans somebody wants, and may see. */
struct tr_traces_wanted {
        const uint8_t *trace; /* 16 bytes; NULL: of any trace */
        bool everybodys;
        uint32_t uid;   /* else only those of this user's calls */
        uint32_t limit; /* only so many, those that ended last; 0: all */
};

/* Those, in the order in which they began, in an array that the caller frees. 0 or -ENOMEM. */
TR_MUST_CHECK int tr_traces_find(struct tr_traces *traces, const struct tr_traces_wanted *wanted,
                                 struct tr_span_record **ret_records, size_t *ret_count);

/* A span as a map: how many pairs, and these. Text, numbers and maps only. */
uint32_t tr_span_pairs(const struct tr_span_record *record);
void tr_span_write(const struct tr_span_record *record, struct tr_writer *writer);
/* "ok", or the code of how it failed. */
const char *tr_span_outcome(const struct tr_span_record *record);
/* Two digits for each byte, and a NUL. */
void tr_span_id_format(const uint8_t *id, size_t bytes, char *ret_text);
bool tr_span_has_parent(const struct tr_span_record *record);

#endif
