/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holding a value against a schema, by recursion over nodes: each level is one of TR_SCHEMA_LEVELS_MAX, each node
 * that is tried a step, and both bounds end the whole check, wherever in it they are met: were they mere failures,
 * `not` would make what is too much work fit.
 *
 * Empty arrays. The value is first held against the schema as it is (strict). Only where that fails, and an empty
 * array stood where an object has to be, is it tried again, with such arrays made maps where they lie; and what came
 * of that has to fit strictly. Alternatives (anyOf, oneOf) are themselves tried strictly first, and what is only
 * asked (if, not) is asked strictly. What failed is undone. So what fits as it is, is passed on as it is; and
 * whatever is passed on fits by JSON Schema's own rules.
 */
#include "daemon/contract/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/contract/number.h"
#include "proto/utf8.h"

/* Bytes of all struct tr_evaluated together, and bytes that are passed for one step. */
#define SEEN_BYTES_MAX (16u << 20)
#define PASSED_PER_STEP 16
/* Rounds of making empty arrays maps: each is for those that only showed up in the one before. */
#define ROUNDS_MAX 4

__attribute__((format(printf, 2, 0))) static char *reason_text(const struct tr_check *check, const char *format,
                                                               va_list arguments) {
        char *reason, *named;

        if (vasprintf(&reason, format, arguments) < 0)
                return NULL;
        if (!check->is_name)
                return reason;
        if (asprintf(&named, "has a name that %s", reason) < 0)
                named = NULL;
        free(reason);
        return named;
}

__attribute__((format(printf, 3, 0))) static int violate(struct tr_check *check, const struct tr_step *step,
                                                         const char *format, va_list arguments, int answer) {
        struct tr_schema_violation violation = { tr_pointer_text(step), reason_text(check, format, arguments) };

        if (!violation.path || !violation.reason) {
                tr_schema_violation_deinit(&violation);
                return tr_error_origin(-ENOMEM);
        }
        tr_schema_violation_deinit(check->violation);
        *check->violation = violation;
        return answer;
}

int tr_check_fail(struct tr_check *check, const struct tr_step *step, const char *format, ...) {
        va_list arguments;
        int r = TR_FAILS;

        va_start(arguments, format);
        if (!check->quiet)
                r = violate(check, step, format, arguments, TR_FAILS);
        va_end(arguments);
        return r;
}

int tr_check_stop(struct tr_check *check, const struct tr_step *step, const char *format, ...) {
        va_list arguments;
        int r;

        va_start(arguments, format);
        r = violate(check, step, format, arguments, TR_STOPPED);
        va_end(arguments);
        return r;
}

static uint64_t all_steps(size_t bytes) {
        return TR_SCHEMA_STEPS + (uint64_t)TR_SCHEMA_STEPS_PER_BYTE * bytes;
}

int tr_check_out_of_steps(struct tr_check *check, const struct tr_step *step) {
        return tr_check_stop(check, step, "takes more than the %" PRIu64 " steps that checking %zu bytes may take",
                             all_steps(check->bytes), check->bytes);
}

int tr_check_pay(struct tr_check *check, const struct tr_step *step, uint64_t steps) {
        if (steps > check->steps) {
                check->steps = 0;
                return tr_check_out_of_steps(check, step);
        }
        check->steps -= steps;
        return 0;
}

/* Values */

static uint8_t types_of(const struct tr_token *token) {
        switch (token->type) {
        case TR_NIL:
                return TR_IS_NULL;
        case TR_BOOL:
                return TR_IS_BOOLEAN;
        case TR_INT:
        case TR_UINT:
                return TR_IS_NUMBER | TR_IS_INTEGER;
        case TR_FLOAT:
                if (!tr_number_is(token))
                        return 0;
                return tr_number_is_integer(token) ? TR_IS_NUMBER | TR_IS_INTEGER : TR_IS_NUMBER;
        case TR_STR:
                return tr_utf8_is_valid(token->data, token->len) ? TR_IS_STRING : 0;
        case TR_ARRAY:
                return TR_IS_ARRAY;
        case TR_MAP:
                return TR_IS_OBJECT;
        case TR_BIN:
        case TR_EXT:
                break;
        }
        return 0;
}

int tr_check_read(struct tr_check *check, const uint8_t **at, const struct tr_step *step, struct tr_value *ret_value) {
        struct tr_reader reader = { *at, check->data + check->bytes };
        int r;

        ret_value->at = check->data + (*at - check->data);
        /* The scanner has passed it. */
        if (tr_read(&reader, &ret_value->token))
                return tr_error_origin(-EBADMSG);
        ret_value->inside = *at = reader.at;
        r = tr_check_pay(check, step,
                         1 + (ret_value->token.type == TR_STR ? ret_value->token.len / TR_BYTES_PER_STEP : 0));
        if (r)
                return r;
        ret_value->types = types_of(&ret_value->token);
        ret_value->step = step;
        return 0;
}

int tr_check_leave(struct tr_check *check, const struct tr_value *value, const uint8_t **at) {
        struct tr_reader reader = { value->at, check->data + check->bytes };

        if (value->token.type != TR_ARRAY && value->token.type != TR_MAP)
                return 0;
        if (tr_read_skip(&reader))
                return tr_error_origin(-EBADMSG);
        *at = reader.at;
        return tr_check_pay(check, value->step, (uint64_t)(reader.at - value->at) / PASSED_PER_STEP);
}

/* Empty arrays that are maps */

static bool is_empty_array(const struct tr_value *value) {
        return value->token.type == TR_ARRAY && value->token.count == 0;
}

/* The heads of an array and a map of the same width differ in one bit, or by 2. */
static void turn(uint8_t *head) {
        switch (*head) {
        case 0x80:
        case 0x90:
                *head ^= 0x10;
                break;
        case 0xdc:
        case 0xdd:
                *head += 2;
                break;
        default:
                *head -= 2;
        }
}

static int make_map(struct tr_check *check, struct tr_value *value) {
        if (check->changes_count == check->changes_room) {
                size_t room = check->changes_room ? 2 * check->changes_room : 16;
                size_t *grown = reallocarray(check->changes, room, sizeof(*grown));

                if (!grown)
                        return tr_error_origin(-ENOMEM);
                check->changes = grown;
                check->changes_room = room;
        }
        check->changes[check->changes_count++] = (size_t)(value->at - check->data);
        turn(value->at);
        value->token.type = TR_MAP;
        value->types = TR_IS_OBJECT;
        return 0;
}

/* Undoes all changes but the first `count`. `value` may be among what is changed back; NULL is fine. */
static void undo(struct tr_check *check, size_t count, struct tr_value *value) {
        while (check->changes_count > count) {
                uint8_t *head = check->data + check->changes[--check->changes_count];

                turn(head);
                if (value && value->at == head) {
                        value->token.type = TR_ARRAY;
                        value->types = TR_IS_ARRAY;
                }
        }
}

static const char *const type_words[TR_TYPES] = {
        "null", "a boolean", "an object", "an array", "a number", "a string", "an integer",
};

static const char *word_for(const struct tr_value *value) {
        switch (value->token.type) {
        case TR_BIN:
                return "bytes";
        case TR_STR:
                return value->types ? "a string" : "text that is no UTF-8";
        case TR_FLOAT:
                return value->types ? "a number" : "no finite number";
        case TR_EXT:
                return value->token.ext == TR_EXT_HANDLE      ? "a handle"
                       : value->token.ext == TR_EXT_MESSAGE   ? "a message"
                       : value->token.ext == TR_EXT_TIMESTAMP ? "a timestamp"
                                                              : "an instance";
        default:
                return type_words[__builtin_ctz(value->types)];
        }
}

static int fail_type(struct tr_check *check, uint8_t types, const struct tr_value *value) {
        char expected[96] = "";
        size_t len = 0;

        if (check->quiet)
                return TR_FAILS;
        for (int i = 0; i < TR_TYPES; i++)
                if (types & 1 << i) {
                        types &= (uint8_t) ~(1 << i);
                        len += (size_t)snprintf(expected + len, sizeof(expected) - len, "%s%s", type_words[i],
                                                !types                ? ""
                                                : types & (types - 1) ? ", "
                                                                      : " or ");
                }
        return tr_check_fail(check, value->step, "is %s; %s is expected", word_for(value), expected);
}

int tr_check_type(struct tr_check *check, uint8_t types, struct tr_value *value) {
        if (types & value->types)
                return 0;
        if (types & TR_IS_OBJECT && is_empty_array(value)) {
                if (!check->is_strict)
                        return make_map(check, value);
                check->stood++;
        }
        return fail_type(check, types, value);
}

/* What keywords have seen */

int tr_evaluated_init(struct tr_check *check, struct tr_evaluated *seen, const struct tr_value *value) {
        size_t words = (size_t)value->token.count / 64 + 1;
        int r;

        *seen = (struct tr_evaluated){ 0 };
        r = tr_check_pay(check, value->step, words / 8);
        if (r)
                return r;
        if (check->seen_bytes + words * sizeof(*seen->words) > SEEN_BYTES_MAX)
                return tr_check_stop(check, value->step, "takes more than %u bytes of memory to check", SEEN_BYTES_MAX);
        seen->words = calloc(words, sizeof(*seen->words));
        if (!seen->words)
                return tr_error_origin(-ENOMEM);
        seen->count = value->token.count;
        check->seen_bytes += words * sizeof(*seen->words);
        return 0;
}

void tr_evaluated_deinit(struct tr_check *check, struct tr_evaluated *seen) {
        if (!seen->words)
                return;
        check->seen_bytes -= ((size_t)seen->count / 64 + 1) * sizeof(*seen->words);
        free(seen->words);
        *seen = (struct tr_evaluated){ 0 };
}

void tr_evaluated_add(struct tr_evaluated *seen, uint32_t index) {
        if (seen)
                seen->words[index / 64] |= UINT64_C(1) << index % 64;
}

bool tr_evaluated_has(const struct tr_evaluated *seen, uint32_t index) {
        return seen->words[index / 64] >> index % 64 & 1;
}

void tr_evaluated_merge(struct tr_evaluated *seen, const struct tr_evaluated *other) {
        for (size_t i = 0; i <= seen->count / 64; i++)
                seen->words[i] |= other->words[i];
}

/* What combines nodes */

int tr_check_try(struct tr_check *check, const struct tr_node *node, struct tr_value *value,
                 struct tr_evaluated *seen) {
        size_t changes = check->changes_count;
        struct tr_evaluated own = { 0 };
        int r = seen ? tr_evaluated_init(check, &own, value) : 0;

        if (!r) {
                check->quiet++;
                r = tr_check_node(check, node, value, seen ? &own : NULL);
                check->quiet--;
        }
        if (r == TR_FITS && seen)
                tr_evaluated_merge(seen, &own);
        if (r == TR_FAILS)
                undo(check, changes, value);
        tr_evaluated_deinit(check, &own);
        return r;
}

/* How many of the list fit, at most `most`: more are not looked for unless somebody wants to know what they have
 * seen. */
static int count_fitting(struct tr_check *check, const struct tr_node_list *list, struct tr_value *value,
                         struct tr_evaluated *seen, size_t most, size_t *ret_count) {
        *ret_count = 0;
        for (size_t i = 0; i < list->count && (seen || *ret_count < most); i++) {
                int r = tr_check_try(check, list->list[i], value, seen);

                if (r != TR_FITS && r != TR_FAILS)
                        return r;
                *ret_count += r == TR_FITS;
        }
        return 0;
}

/* The same, with empty arrays as objects only where else there are not as many as there have to be. */
static int count_fitting_strictly_first(struct tr_check *check, const struct tr_node_list *list, struct tr_value *value,
                                        struct tr_evaluated *seen, size_t most, size_t *ret_count) {
        uint64_t stood = check->stood;
        bool was_strict = check->is_strict;
        int r;

        check->is_strict = true;
        r = count_fitting(check, list, value, seen, most, ret_count);
        check->is_strict = was_strict;
        if (r || was_strict || *ret_count > 0 || check->stood == stood)
                return r;
        return count_fitting(check, list, value, seen, most, ret_count);
}

/* None of the list fits. Where the value has the type of just one of them, that is the one that was meant. */
static int fail_all(struct tr_check *check, const struct tr_node_list *list, struct tr_value *value) {
        const struct tr_node *meant = NULL;
        size_t candidates = 0;

        for (size_t i = 0; i < list->count && !check->quiet; i++) {
                const struct tr_node *node = list->list[i];

                if (!node->is_false && (!node->types || node->types & value->types)) {
                        candidates++;
                        meant = node;
                }
        }
        if (candidates == 1) {
                int r = tr_check_node(check, meant, value, NULL);

                if (r != TR_FITS)
                        return r;
        }
        return tr_check_fail(check, value->step, "fits none of the alternatives");
}

static int check_any(struct tr_check *check, const struct tr_node_list *list, struct tr_value *value,
                     struct tr_evaluated *seen) {
        size_t count;
        int r;

        r = count_fitting_strictly_first(check, list, value, seen, 1, &count);
        if (r || count > 0)
                return r;
        return fail_all(check, list, value);
}

static int check_one(struct tr_check *check, const struct tr_node_list *list, struct tr_value *value,
                     struct tr_evaluated *seen) {
        size_t count;
        int r;

        r = count_fitting_strictly_first(check, list, value, seen, 2, &count);
        if (r || count == 1)
                return r;
        if (count == 0)
                return fail_all(check, list, value);
        return tr_check_fail(check, value->step, "fits more than one of the alternatives, of which it has to fit one");
}

static int check_all(struct tr_check *check, const struct tr_node_list *list, struct tr_value *value,
                     struct tr_evaluated *seen) {
        int r = TR_FITS;

        for (size_t i = 0; i < list->count && r == TR_FITS; i++)
                r = tr_check_node(check, list->list[i], value, seen);
        return r;
}

/* Whether the value fits as it is. */
static int try_strictly(struct tr_check *check, const struct tr_node *node, struct tr_value *value,
                        struct tr_evaluated *seen) {
        bool was_strict = check->is_strict;
        int r;

        check->is_strict = true;
        r = tr_check_try(check, node, value, seen);
        check->is_strict = was_strict;
        return r;
}

static int check_not(struct tr_check *check, const struct tr_node *node, struct tr_value *value) {
        int r = try_strictly(check, node, value, NULL);

        if (r == TR_FAILS)
                return TR_FITS;
        return r ? r : tr_check_fail(check, value->step, "fits what it may not fit");
}

static int check_if(struct tr_check *check, const struct tr_node *node, struct tr_value *value,
                    struct tr_evaluated *seen) {
        int r = try_strictly(check, node->if_, value, seen);
        const struct tr_node *next = r == TR_FITS ? node->then : node->else_;

        if (r != TR_FITS && r != TR_FAILS)
                return r;
        return next ? tr_check_node(check, next, value, seen) : TR_FITS;
}

/* The outermost resource on the way here that has the name decides. */
static int check_dynamic(struct tr_check *check, const struct tr_node *node, struct tr_value *value,
                         struct tr_evaluated *seen) {
        const struct tr_node *target = node->dynamic_ref;
        uint64_t looked_at = 0;
        int r;

        for (const struct tr_scope *scope = check->scope; scope && node->dynamic_name; scope = scope->outer) {
                const struct tr_node *found = tr_dynamic_anchor(scope->resource, node->dynamic_name);

                looked_at += 1 + scope->resource->anchors_count;
                if (found)
                        target = found;
        }
        r = tr_check_pay(check, value->step, looked_at);
        return r ? r : tr_check_node(check, target, value, seen);
}

static int check_combined(struct tr_check *check, const struct tr_node *node, struct tr_value *value,
                          struct tr_evaluated *seen) {
        int r = node->ref ? tr_check_node(check, node->ref, value, seen) : TR_FITS;

        if (!r && node->dynamic_ref)
                r = check_dynamic(check, node, value, seen);
        if (!r && node->all_of.count)
                r = check_all(check, &node->all_of, value, seen);
        if (!r && node->any_of.count)
                r = check_any(check, &node->any_of, value, seen);
        if (!r && node->one_of.count)
                r = check_one(check, &node->one_of, value, seen);
        if (!r && node->not_)
                r = check_not(check, node->not_, value);
        if (!r && node->if_)
                r = check_if(check, node, value, seen);
        return r;
}

static int check_keywords(struct tr_check *check, const struct tr_node *node, struct tr_value *value,
                          struct tr_evaluated *seen) {
        int r = node->types ? tr_check_type(check, node->types, value) : TR_FITS;

        if (!r && node->constant)
                r = tr_check_values(check, node->constant, value, "is not the value that it has to be");
        if (!r && node->choices)
                r = tr_check_values(check, node->choices, value, "is none of the values that are allowed");
        if (!r && node->numbers && value->types & TR_IS_NUMBER)
                r = tr_check_number(check, node->numbers, value);
        if (!r && node->strings && value->types & TR_IS_STRING)
                r = tr_check_string(check, node->strings, value);
        if (!r && node->arrays && value->types & TR_IS_ARRAY)
                r = tr_check_array(check, node->arrays, value, seen);
        if (!r && node->objects && value->types & TR_IS_OBJECT)
                r = tr_check_object(check, node->objects, value, seen);
        return r ? r : check_combined(check, node, value, seen);
}

static bool has_unevaluated(const struct tr_node *node, const struct tr_value *value) {
        return (value->types & TR_IS_ARRAY && node->arrays && node->arrays->unevaluated) ||
               (value->types & TR_IS_OBJECT && node->objects && node->objects->unevaluated);
}

/* With a list of its own of what was seen: what stands beside this node does not count for its unevaluated*. */
static int check_with_unevaluated(struct tr_check *check, const struct tr_node *node, struct tr_value *value,
                                  struct tr_evaluated *seen) {
        struct tr_evaluated own;
        int r;

        r = tr_evaluated_init(check, &own, value);
        if (!r)
                r = check_keywords(check, node, value, &own);
        if (!r && value->types & TR_IS_ARRAY)
                r = tr_check_unevaluated_elements(check, node->arrays->unevaluated, value, &own);
        else if (!r)
                r = tr_check_unevaluated_members(check, node->objects->unevaluated, value, &own);
        if (!r && seen)
                tr_evaluated_merge(seen, &own);
        tr_evaluated_deinit(check, &own);
        return r;
}

static int check_inside(struct tr_check *check, const struct tr_node *node, struct tr_value *value,
                        struct tr_evaluated *seen) {
        const struct tr_scope scope = { check->scope, node->resource };
        bool enters = check->schema->has_dynamic && (!scope.outer || scope.outer->resource != node->resource);
        int r;

        if (enters)
                check->scope = &scope;
        r = has_unevaluated(node, value) ? check_with_unevaluated(check, node, value, seen)
                                         : check_keywords(check, node, value, seen);
        if (enters)
                check->scope = scope.outer;
        return r;
}

int tr_check_node(struct tr_check *check, const struct tr_node *node, struct tr_value *value,
                  struct tr_evaluated *seen) {
        int r;

        if (node->is_true)
                return TR_FITS;
        if (node->is_false)
                return tr_check_fail(check, value->step, "is not allowed");
        r = tr_check_pay(check, value->step, 1);
        if (r)
                return r;
        if (check->levels == TR_SCHEMA_LEVELS_MAX)
                return tr_check_stop(check, value->step, "takes more than %d subschemas inside each other to check",
                                     TR_SCHEMA_LEVELS_MAX);
        check->levels++;
        r = check_inside(check, node, value, seen);
        check->levels--;
        return r;
}

/* The whole */

static int check_once(struct tr_check *check, bool is_strict) {
        const uint8_t *at = check->data;
        struct tr_value value;
        int r;

        check->is_strict = is_strict;
        check->stood = 0;
        r = tr_check_read(check, &at, NULL, &value);
        return r ? r : tr_check_node(check, check->schema->root, &value, NULL);
}

static int check_whole(struct tr_check *check) {
        int r = check_once(check, true);

        for (unsigned round = 0; r == TR_FAILS && check->stood && round < ROUNDS_MAX; round++) {
                r = check_once(check, false);
                if (r == TR_FITS)
                        r = check_once(check, true);
                else
                        break;
        }
        return r;
}

int tr_schema_check(const struct tr_schema *schema, uint8_t *data, size_t bytes,
                    struct tr_schema_violation *ret_violation) {
        struct tr_schema_violation violation = { 0 };
        struct tr_check check = { .schema = schema, .data = data, .bytes = bytes, .violation = &violation };
        int r;

        check.steps = all_steps(bytes);
        r = check_whole(&check);
        if (r)
                undo(&check, 0, NULL);
        free(check.changes);
        tr_matcher_deinit(&check.matcher);
        tr_writer_deinit(&check.writer);
        if (r > 0) {
                *ret_violation = violation;
                return TR_SCHEMA_VIOLATED;
        }
        tr_schema_violation_deinit(&violation);
        return tr_error_fold(r);
}
