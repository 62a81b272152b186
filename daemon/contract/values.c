/* SPDX-License-Identifier: Apache-2.0 */
/* The values of const and enum: canonical, and sorted, so that one is found among many by halving. */
#include <errno.h>
#include <string.h>

#include "daemon/contract/compile.h"
#include "daemon/contract/json.h"

/* Adds the canonical form of one value to those before it. */
static int add_value(struct tr_compiler *compiler, const struct tr_subschema *at, const char *keyword, json_t *json,
                     struct tr_writer *writer) {
        struct tr_writer packed = TR_WRITER_INIT;
        struct tr_reader reader;
        int r;

        r = tr_json_pack(&packed, json);
        if (tr_writer_error(&packed)) {
                r = tr_error_origin(tr_writer_error(&packed));
        } else if (r == TR_JSON_TOO_DEEP) {
                r = tr_compile_wrong_in(compiler, at, keyword, "has a value that is nested deeper than %d levels",
                                        TR_NESTING_MAX);
        } else {
                reader = tr_reader(packed.data, packed.len);
                r = tr_canonical_write(writer, &reader, &compiler->steps);
                if (r == TR_CANONICAL_STOPPED)
                        r = tr_compile_wrong_in(compiler, at, keyword, "takes more work than there may be");
        }
        tr_writer_deinit(&packed);
        return r;
}

/* Each slice's index is where its value begins, since what they are in may move. */
static int add_values(struct tr_compiler *compiler, const struct tr_subschema *at, const char *keyword,
                      json_t *const *values, struct tr_values *list, struct tr_writer *writer) {
        for (size_t i = 0; i < list->count; i++) {
                size_t begin = writer->len;
                int r;

                r = add_value(compiler, at, keyword, values[i], writer);
                if (r)
                        return r;
                list->list[i] = (struct tr_slice){ NULL, writer->len - begin, begin };
        }
        compiler->values_bytes += writer->len;
        if (compiler->values_bytes > TR_SCHEMA_VALUES_MAX)
                return tr_compile_wrong_in(compiler, at, keyword,
                                           "has values with which all take more than the %u bytes that they may",
                                           TR_SCHEMA_VALUES_MAX);
        return 0;
}

static int settle(struct tr_compiler *compiler, const struct tr_subschema *at, const char *keyword,
                  struct tr_values *list, const struct tr_writer *writer) {
        const char *data = tr_arena_copy(&compiler->schema->arena, (const char *)writer->data, writer->len);

        if (!data)
                return tr_error_origin(-ENOMEM);
        for (size_t i = 0; i < list->count; i++)
                list->list[i].data = (const uint8_t *)data + list->list[i].index;
        if (tr_slices_sort(list->list, list->count, &compiler->steps))
                return tr_compile_wrong_in(compiler, at, keyword, "takes more work than there may be");
        return 0;
}

int tr_compile_values(struct tr_compiler *compiler, const struct tr_subschema *at, const char *keyword,
                      json_t *const *values, size_t count, const struct tr_values **ret_values) {
        struct tr_writer writer = TR_WRITER_INIT;
        struct tr_values *list;
        int r;

        r = tr_compile_take(compiler, 1, sizeof(*list), &list);
        if (!r)
                r = tr_compile_take(compiler, count, sizeof(*list->list), &list->list);
        if (r)
                return r;
        list->count = count;
        r = add_values(compiler, at, keyword, values, list, &writer);
        if (!r)
                r = settle(compiler, at, keyword, list, &writer);
        tr_writer_deinit(&writer);
        if (!r)
                *ret_values = list;
        return r;
}
