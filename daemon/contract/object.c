/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects: their members one by one, and what is asked of all of them together. A member's name is the text that its
 * key has in the plain form; a key that is no UTF-8 is a name that no pattern matches, and that is no string.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/contract/check.h"
#include "proto/utf8.h"

/* Which of the members that the schema names are there. Few of them need no memory of their own. */
struct present {
        const struct tr_objects *objects;
        uint64_t few;
        uint64_t *words;
};

/* A member of the value, while it is looked at. */
struct member {
        struct tr_key key;
        struct tr_step step;
        struct tr_value value;
        uint32_t index;
};

typedef int member_fn(struct tr_check *check, void *data, struct member *member, struct tr_evaluated *seen);

static void set_present(struct present *present, size_t index) {
        present->words[index / 64] |= UINT64_C(1) << index % 64;
}

static bool is_present(const struct present *present, size_t index) {
        return present->words[index / 64] >> index % 64 & 1;
}

/* Reads the key and the value's head at *at. */
static int read_member(struct tr_check *check, const struct tr_value *object, const uint8_t **at,
                       struct member *member) {
        struct tr_reader reader = { *at, check->data + check->bytes };
        struct tr_token token;

        if (tr_read(&reader, &token))
                return tr_error_origin(-EBADMSG);
        *at = reader.at;
        tr_key_read(&member->key, &token);
        member->step = (struct tr_step){ object->step, member->key.data, member->key.len, 0 };
        return tr_check_read(check, at, &member->step, &member->value);
}

/* The name itself, held against propertyNames. */
static int check_name(struct tr_check *check, const struct tr_node *node, const struct member *member) {
        struct tr_value name = { .step = &member->step };
        bool was_name = check->is_name;
        int r;

        name.token.type = TR_STR;
        name.token.data = (const uint8_t *)member->key.data;
        name.token.len = (uint32_t)member->key.len;
        name.types = tr_utf8_is_valid(member->key.data, member->key.len) ? TR_IS_STRING : 0;
        check->is_name = true;
        r = tr_check_node(check, node, &name, NULL);
        check->is_name = was_name;
        return r;
}

static int check_patterns(struct tr_check *check, const struct tr_objects *objects, struct member *member,
                          bool *ret_known) {
        const uint8_t *name = (const uint8_t *)member->key.data;
        int r = TR_FITS;

        if (objects->patterns_count == 0 || !tr_utf8_is_valid(name, member->key.len))
                return TR_FITS;
        for (size_t i = 0; i < objects->patterns_count && !r; i++) {
                r = tr_check_match(check, objects->patterns[i].pattern, name, member->key.len, &member->step);
                if (r == TR_FAILS) {
                        r = TR_FITS;
                        continue;
                }
                if (!r)
                        r = tr_check_node(check, objects->patterns[i].schema, &member->value, NULL);
                *ret_known = true;
        }
        return r;
}

static int check_member(struct tr_check *check, void *data, struct member *member, struct tr_evaluated *seen) {
        struct present *present = data;
        const struct tr_objects *objects = present->objects;
        const struct tr_member *named = tr_member_find(objects, member->key.data, member->key.len);
        bool is_known = named && named->schema;
        int r = objects->names ? check_name(check, objects->names, member) : TR_FITS;

        if (named)
                set_present(present, (size_t)(named - objects->members));
        if (!r && is_known)
                r = tr_check_node(check, named->schema, &member->value, NULL);
        if (!r)
                r = check_patterns(check, objects, member, &is_known);
        if (!r && !is_known && objects->additional) {
                r = tr_check_node(check, objects->additional, &member->value, NULL);
                is_known = true;
        }
        if (!r && is_known)
                tr_evaluated_add(seen, member->index);
        return r;
}

static int check_unseen(struct tr_check *check, void *data, struct member *member, struct tr_evaluated *seen) {
        const struct tr_node *const *node = data;
        int r = tr_evaluated_has(seen, member->index) ? TR_FITS : tr_check_node(check, *node, &member->value, NULL);

        if (!r)
                tr_evaluated_add(seen, member->index);
        return r;
}

/* Looks at each member in turn. */
static int walk(struct tr_check *check, struct tr_value *value, member_fn *look, void *data,
                struct tr_evaluated *seen) {
        const uint8_t *at = value->inside;
        int r = TR_FITS;

        for (uint32_t i = 0; i < value->token.count && !r; i++) {
                struct member member = { .index = i };

                r = read_member(check, value, &at, &member);
                if (!r)
                        r = tr_check_pay(check, &member.step, member.key.len / TR_BYTES_PER_STEP);
                if (!r)
                        r = look(check, data, &member, seen);
                if (!r)
                        r = tr_check_leave(check, &member.value, &at);
        }
        return r;
}

/* Apart, so that the texts are not on the stack while it goes deeper. */
__attribute__((noinline)) static int fail_missing(struct tr_check *check, const struct tr_value *value,
                                                  const struct tr_member *missing, const struct tr_member *because) {
        char name[TR_SHOWN_MAX], other[TR_SHOWN_MAX];

        if (check->quiet)
                return TR_FAILS;
        (void)tr_pointer_show(name, sizeof(name), missing->name, missing->name_len);
        if (!because)
                return tr_check_fail(check, value->step, "lacks the member \"%s\"", name);
        (void)tr_pointer_show(other, sizeof(other), because->name, because->name_len);
        return tr_check_fail(check, value->step, "lacks the member \"%s\", which \"%s\" needs", name, other);
}

static int check_needs(struct tr_check *check, const struct tr_objects *objects, const struct tr_member *member,
                       struct tr_value *value, const struct present *present) {
        int r = tr_check_pay(check, value->step, member->needs_count);

        for (size_t i = 0; i < member->needs_count && !r; i++)
                if (!is_present(present, member->needs[i]))
                        r = fail_missing(check, value, &objects->members[member->needs[i]], member);
        return r;
}

/* What is asked once it is known which members are there. */
static int check_present(struct tr_check *check, const struct tr_objects *objects, struct tr_value *value,
                         const struct present *present, struct tr_evaluated *seen) {
        int r = tr_check_pay(check, value->step, objects->checked_count / TR_BYTES_PER_STEP);

        for (size_t i = 0; i < objects->checked_count && !r; i++) {
                const struct tr_member *member = &objects->members[objects->checked[i]];

                if (!is_present(present, objects->checked[i])) {
                        if (member->is_required)
                                r = fail_missing(check, value, member, NULL);
                        continue;
                }
                r = check_needs(check, objects, member, value, present);
                if (!r && member->dependent)
                        r = tr_check_node(check, member->dependent, value, seen);
        }
        return r;
}

static int check_with_present(struct tr_check *check, const struct tr_objects *objects, struct tr_value *value,
                              struct tr_evaluated *seen) {
        struct present present = { .objects = objects };
        int r = TR_FITS;

        present.words = &present.few;
        if (objects->members_count > 64) {
                present.words = calloc(objects->members_count / 64 + 1, sizeof(*present.words));
                if (!present.words)
                        return tr_error_origin(-ENOMEM);
                r = tr_check_pay(check, value->step, objects->members_count / 512);
        }
        if (!r)
                r = walk(check, value, check_member, &present, seen);
        if (!r)
                r = check_present(check, objects, value, &present, seen);
        if (present.words != &present.few)
                free(present.words);
        return r;
}

int tr_check_object(struct tr_check *check, const struct tr_objects *objects, struct tr_value *value,
                    struct tr_evaluated *seen) {
        static const struct tr_counted members = { "has", "member", "members" };
        int r;

        r = tr_check_count(check, value->step, &members, value->token.count, objects->min, objects->max);
        if (!r && (objects->members_count || objects->patterns_count || objects->additional || objects->names))
                r = check_with_present(check, objects, value, seen);
        return r;
}

int tr_check_unevaluated_members(struct tr_check *check, const struct tr_node *node, struct tr_value *value,
                                 struct tr_evaluated *seen) {
        return walk(check, value, check_unseen, &node, seen);
}
