/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: their elements one by one, and what is asked of all of them together. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/contract/check.h"

/* An element, while it is looked at. */
typedef int element_fn(struct tr_check *check, void *data, struct tr_value *element, uint32_t index,
                       struct tr_evaluated *seen);

/* Looks at each element in turn. */
static int walk(struct tr_check *check, struct tr_value *value, element_fn *look, void *data,
                struct tr_evaluated *seen) {
        const uint8_t *at = value->inside;
        int r = TR_FITS;

        for (uint32_t i = 0; i < value->token.count && !r; i++) {
                const struct tr_step step = { .parent = value->step, .index = i };
                struct tr_value element;

                r = tr_check_read(check, &at, &step, &element);
                if (!r)
                        r = look(check, data, &element, i, seen);
                if (!r)
                        r = tr_check_leave(check, &element, &at);
        }
        return r;
}

struct contents {
        const struct tr_arrays *arrays;
        uint64_t contained; /* elements that fit what there have to be some of */
};

static int count_contained(struct tr_check *check, struct contents *contents, struct tr_value *element, uint32_t index,
                           struct tr_evaluated *seen) {
        int r;

        if (!contents->arrays->contains)
                return TR_FITS;
        r = tr_check_try(check, contents->arrays->contains, element, NULL);
        if (r == TR_FITS) {
                tr_evaluated_add(seen, index);
                contents->contained++;
        }
        return r == TR_FAILS ? TR_FITS : r;
}

static int check_element(struct tr_check *check, void *data, struct tr_value *element, uint32_t index,
                         struct tr_evaluated *seen) {
        struct contents *contents = data;
        const struct tr_node_list *prefix = &contents->arrays->prefix;
        const struct tr_node *node = index < prefix->count ? prefix->list[index] : contents->arrays->items;
        int r = node ? tr_check_node(check, node, element, NULL) : TR_FITS;

        if (!r && node)
                tr_evaluated_add(seen, index);
        return r ? r : count_contained(check, contents, element, index, seen);
}

static int check_unseen(struct tr_check *check, void *data, struct tr_value *element, uint32_t index,
                        struct tr_evaluated *seen) {
        const struct tr_node *const *node = data;
        int r = tr_evaluated_has(seen, index) ? TR_FITS : tr_check_node(check, *node, element, NULL);

        if (!r)
                tr_evaluated_add(seen, index);
        return r;
}

/* Canonical elements one behind another; each slice's index is the element's, and its data is set at the end. */
static int write_elements(struct tr_check *check, const struct tr_value *value, struct tr_slice *slices) {
        struct tr_reader reader = { value->inside, check->data + check->bytes };
        size_t begin = 0;

        tr_writer_reset(&check->writer);
        for (uint32_t i = 0; i < value->token.count; i++) {
                int r = tr_canonical_write(&check->writer, &reader, &check->steps);

                if (r)
                        return r;
                slices[i] = (struct tr_slice){ NULL, check->writer.len - begin, i };
                begin = check->writer.len;
        }
        begin = 0;
        for (uint32_t i = 0; i < value->token.count; i++) {
                slices[i].data = check->writer.data + begin;
                begin += slices[i].len;
        }
        return 0;
}

static int find_same(struct tr_check *check, const struct tr_slice *slices, const struct tr_value *value) {
        for (uint32_t i = 1; i < value->token.count; i++)
                if (tr_slice_compare(&slices[i - 1], &slices[i]) == 0)
                        return tr_check_fail(check, value->step, "has the same element at %zu and at %zu",
                                             slices[i - 1].index, slices[i].index);
        return TR_FITS;
}

/* Equal elements are neighbours once all are sorted. */
static int check_unique(struct tr_check *check, const struct tr_value *value) {
        struct tr_slice *slices = NULL;
        int r;

        if (value->token.count < 2)
                return TR_FITS;
        r = tr_slices_new(value->token.count, &check->steps, &slices);
        if (!r)
                r = write_elements(check, value, slices);
        if (!r)
                r = tr_slices_sort(slices, value->token.count, &check->steps);
        if (r > 0)
                r = tr_check_out_of_steps(check, value->step);
        else if (!r)
                r = find_same(check, slices, value);
        free(slices);
        return r;
}

int tr_check_array(struct tr_check *check, const struct tr_arrays *arrays, struct tr_value *value,
                   struct tr_evaluated *seen) {
        static const struct tr_counted elements = { "has", "element", "elements" };
        static const struct tr_counted fitting = { "has", "element that fits what it has to contain",
                                                   "elements that fit what it has to contain" };
        struct contents contents = { arrays, 0 };
        int r;

        r = tr_check_count(check, value->step, &elements, value->token.count, arrays->min, arrays->max);
        if (!r && (arrays->items || arrays->prefix.count || arrays->contains))
                r = walk(check, value, check_element, &contents, seen);
        if (!r && arrays->contains)
                r = tr_check_count(check, value->step, &fitting, contents.contained, arrays->min_contains,
                                   arrays->max_contains);
        if (!r && arrays->unique)
                r = check_unique(check, value);
        return r;
}

int tr_check_unevaluated_elements(struct tr_check *check, const struct tr_node *node, struct tr_value *value,
                                  struct tr_evaluated *seen) {
        return walk(check, value, check_unseen, &node, seen);
}
