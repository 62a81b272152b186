/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CONTRACT_CHECK_H
#define TR_CONTRACT_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/contract/node.h"
#include "daemon/contract/pointer.h"

/*
 * A check at work: check.c holds a node against a value and sees to what combines nodes, scalar.c, array.c and object.c
 * to what depends on the value's type. All answer one of these, or -ENOMEM.
 */
enum {
        TR_FITS = 0,
        TR_FAILS = 1,   /* the violation is filled in, unless the check is quiet */
        TR_STOPPED = 2, /* beyond a bound, which ends the whole check: the violation is filled in */
};

/* A resource that was entered, for $dynamicRef. */
struct tr_scope {
        const struct tr_scope *outer;
        const struct tr_resource *resource;
};

struct tr_check {
        const struct tr_schema *schema;
        uint8_t *data;
        size_t bytes;
        uint64_t steps; /* left */
        unsigned levels;
        unsigned quiet;  /* how many around this only ask whether it fits */
        bool is_strict;  /* an empty array is no object */
        bool is_name;    /* what is held against a schema is a member's name */
        uint64_t stood;  /* how often an empty array would have had to be an object */
        size_t *changes; /* offsets of empty arrays that are empty maps now */
        size_t changes_count, changes_room;
        size_t seen_bytes; /* of all struct tr_evaluated together */
        const struct tr_scope *scope;
        struct tr_matcher matcher;
        struct tr_writer writer; /* for canonical values */
        struct tr_schema_violation *violation;
};

/* What is held against a schema: a value in the data, or a member's name, of which `at` is NULL. */
struct tr_value {
        uint8_t *at;           /* its head */
        const uint8_t *inside; /* behind its head */
        struct tr_token token;
        uint8_t types; /* TR_IS_*; 0: nothing that JSON has */
        const struct tr_step *step;
};

/* Which members or elements of a container some keyword has seen, for unevaluatedProperties and unevaluatedItems. */
struct tr_evaluated {
        uint64_t *words;
        uint32_t count;
};

/* `seen` is NULL where nobody wants to know. */
TR_MUST_CHECK int tr_check_node(struct tr_check *check, const struct tr_node *node, struct tr_value *value,
                                struct tr_evaluated *seen);
/* Whether it fits: quietly, and what a failure has changed is undone. */
TR_MUST_CHECK int tr_check_try(struct tr_check *check, const struct tr_node *node, struct tr_value *value,
                               struct tr_evaluated *seen);

/* Fills in the violation where the check is not quiet; answers TR_FAILS or -ENOMEM. */
int tr_check_fail(struct tr_check *check, const struct tr_step *step, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* Fills it in; answers TR_STOPPED or -ENOMEM. */
int tr_check_stop(struct tr_check *check, const struct tr_step *step, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* Takes steps off those that are left: TR_FITS, TR_STOPPED or -ENOMEM. */
TR_MUST_CHECK int tr_check_pay(struct tr_check *check, const struct tr_step *step, uint64_t steps);
/* There are no more steps. */
int tr_check_out_of_steps(struct tr_check *check, const struct tr_step *step);

/* Reads the head of the value that begins at *at, and moves *at behind that. It is paid for, as long as it is. */
TR_MUST_CHECK int tr_check_read(struct tr_check *check, const uint8_t **at, const struct tr_step *step,
                                struct tr_value *ret_value);
/* Moves *at from behind the head to behind the value. */
TR_MUST_CHECK int tr_check_leave(struct tr_check *check, const struct tr_value *value, const uint8_t **at);

/* Room for as many as the value has. Deinit also after a failure. */
TR_MUST_CHECK int tr_evaluated_init(struct tr_check *check, struct tr_evaluated *seen, const struct tr_value *value);
void tr_evaluated_deinit(struct tr_check *check, struct tr_evaluated *seen);
void tr_evaluated_add(struct tr_evaluated *seen, uint32_t index); /* NULL is fine */
void tr_evaluated_merge(struct tr_evaluated *seen, const struct tr_evaluated *other);
bool tr_evaluated_has(const struct tr_evaluated *seen, uint32_t index);

/* By type */
TR_MUST_CHECK int tr_check_type(struct tr_check *check, uint8_t types, struct tr_value *value);
TR_MUST_CHECK int tr_check_values(struct tr_check *check, const struct tr_values *values, const struct tr_value *value,
                                  const char *reason);
TR_MUST_CHECK int tr_check_number(struct tr_check *check, const struct tr_numbers *numbers,
                                  const struct tr_value *value);
TR_MUST_CHECK int tr_check_string(struct tr_check *check, const struct tr_strings *strings,
                                  const struct tr_value *value);
TR_MUST_CHECK int tr_check_array(struct tr_check *check, const struct tr_arrays *arrays, struct tr_value *value,
                                 struct tr_evaluated *seen);
TR_MUST_CHECK int tr_check_object(struct tr_check *check, const struct tr_objects *objects, struct tr_value *value,
                                  struct tr_evaluated *seen);
/* What no keyword has seen, and now this one has. */
TR_MUST_CHECK int tr_check_unevaluated_elements(struct tr_check *check, const struct tr_node *node,
                                                struct tr_value *value, struct tr_evaluated *seen);
TR_MUST_CHECK int tr_check_unevaluated_members(struct tr_check *check, const struct tr_node *node,
                                               struct tr_value *value, struct tr_evaluated *seen);
/* Whether the text matches: TR_FITS, TR_FAILS (nothing is filled in), TR_STOPPED or -ENOMEM. */
TR_MUST_CHECK int tr_check_match(struct tr_check *check, const struct tr_pattern *pattern, const uint8_t *text,
                                 size_t len, const struct tr_step *step);

/* A value has so many of something: "is 3 characters long". */
struct tr_counted {
        const char *verb;
        const char *one;
        const char *many;
};
TR_MUST_CHECK int tr_check_count(struct tr_check *check, const struct tr_step *step, const struct tr_counted *what,
                                 uint64_t count, uint64_t min, uint64_t max);

/* Bytes that are looked at for one step. */
#define TR_BYTES_PER_STEP 64
/* Bytes of a name or a pattern in a reason. */
#define TR_SHOWN_MAX 100

#endif
