/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_TRACE_H
#define TR_CORE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/base/lock.h"
#include "proto/code.h"

/*
 * Traces: which chain of calls a call is part of. A trace is named by 16 bytes and each call in it, a span, by 8, as in W3C's
 * Trace Context (https://www.w3.org/TR/trace-context/): "00-<trace>-<span>-<flags>". A call that names a span which is running here is
 * one deeper than that; deeper than TR_CHAIN_MAX is a loop.
 */
#define TR_CHAIN_MAX 32
#define TR_TRACEPARENT_LEN 55

struct tr_span_id {
        uint8_t trace[16];
        uint8_t span[8];
        uint8_t parent[8]; /* all zero: it is the first */
        uint8_t flags;
        uint32_t depth;    /* 1: the first */
        struct tr_span_id *next_running; /* guarded by the lock of those that are running */
};

/* Spans that are running, by their ids. They are others' (an invocation's), who have to take them out before they go. */
struct tr_spans {
        struct tr_lock lock; /* nothing else is acquired under it */
        struct tr_span_id **buckets TR_GUARDED_BY(lock);
        uint32_t room TR_GUARDED_BY(lock);  /* a power of two */
        uint32_t count TR_GUARDED_BY(lock);
        uint64_t random[4] TR_GUARDED_BY(lock); /* the state of the generator of ids */
};

/* 0 or a negative errno. */
TR_MUST_CHECK int tr_spans_init(struct tr_spans *spans);
/* It must be empty. */
void tr_spans_deinit(struct tr_spans *spans);

/* Whether a text is a traceparent of version 00, or a later one that begins the same. */
bool tr_traceparent_is_valid(const char *text, size_t len);
/* Writes a new span, a child of the one that `traceparent` names (valid; NULL: of none), which is running from now on: 0, or
 * TR_SPAN_LOOP, and nothing is. Any thread. */
enum {
        TR_SPAN_LOOP = 1,
};
TR_MUST_CHECK int tr_spans_begin(struct tr_spans *spans, const char *traceparent, struct tr_span_id *ret_span);
/* The same, at a depth that is known, of a chain that may have ended: 1 to TR_CHAIN_MAX. It cannot fail. */
void tr_spans_resume(struct tr_spans *spans, const char *traceparent, uint32_t depth, struct tr_span_id *ret_span);
/* It runs no more. */
void tr_spans_end(struct tr_spans *spans, struct tr_span_id *span);
/* "00-…-…-01" and a NUL. */
void tr_traceparent_write(const struct tr_span_id *span, char ret_text[static TR_TRACEPARENT_LEN + 1]);

/* A span that is over: how a call ended. All of it is borrowed. For daemon/watch. */
struct tr_span_news {
        const struct tr_span_id *span;
        const char *component;
        const char *operation;
        const char *instance; /* who answered it last; NULL: nobody had it */
        uint32_t uid;         /* the caller's */
        int32_t pid;
        uint32_t attempt;     /* deliveries that began; 0: it never ran */
        uint64_t came_ns;     /* when it came, by tr_clock_ns() */
        uint64_t queued_ns;
        uint64_t run_ns;      /* of the last attempt */
        bool failed;
        enum tr_code code;    /* where it failed */
        const char *message;  /* of the failure; or NULL */
};

#endif
