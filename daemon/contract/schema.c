/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a schema, and what it is kept in. */
#include "daemon/contract/schema.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/contract/node.h"

/* What most schemas need takes one block. */
#define BLOCK_BYTES 4000

struct tr_block {
        struct tr_block *next;
        size_t bytes;
        _Alignas(16) uint8_t data[];
};

const char *const tr_type_names[TR_TYPES] = { "null", "boolean", "object", "array", "number", "string", "integer" };

void *tr_arena_take(struct tr_arena *arena, size_t bytes) {
        size_t rounded = bytes > 0 ? (bytes + 15) / 16 * 16 : 16;

        if (rounded < bytes)
                return NULL;
        if (rounded > arena->left) {
                size_t size = rounded > BLOCK_BYTES ? rounded : BLOCK_BYTES;
                struct tr_block *block;

                if (size > SIZE_MAX - sizeof(*block))
                        return NULL;
                block = calloc(1, sizeof(*block) + size);
                if (!block)
                        return NULL;
                block->bytes = size;
                block->next = arena->blocks;
                arena->blocks = block;
                arena->left = size;
        }
        arena->left -= rounded;
        return arena->blocks->data + arena->blocks->bytes - arena->left - rounded;
}

char *tr_arena_copy(struct tr_arena *arena, const char *text, size_t len) {
        char *copy = tr_arena_take(arena, len + 1);

        if (copy && len > 0)
                memcpy(copy, text, len);
        return copy;
}

void tr_arena_deinit(struct tr_arena *arena) {
        while (arena->blocks) {
                struct tr_block *block = arena->blocks;

                arena->blocks = block->next;
                free(block);
        }
        arena->left = 0;
}

int tr_member_compare(const char *a, size_t a_len, const char *b, size_t b_len) {
        size_t len = a_len < b_len ? a_len : b_len;
        int order = len ? memcmp(a, b, len) : 0;

        return order ? order : (a_len > b_len) - (a_len < b_len);
}

const struct tr_member *tr_member_find(const struct tr_objects *objects, const char *name, size_t len) {
        size_t low = 0, high = objects->members_count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                const struct tr_member *member = &objects->members[middle];
                int order = tr_member_compare(name, len, member->name, member->name_len);

                if (order == 0)
                        return member;
                if (order < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return NULL;
}

struct tr_schema *tr_schema_ref(struct tr_schema *schema) {
        atomic_fetch_add_explicit(&schema->refs, 1, memory_order_relaxed);
        return schema;
}

struct tr_schema *tr_schema_unref(struct tr_schema *schema) {
        if (!schema || atomic_fetch_sub_explicit(&schema->refs, 1, memory_order_acq_rel) > 1)
                return NULL;
        for (struct tr_schema_pattern *at = schema->patterns; at; at = at->next)
                tr_pattern_free(at->pattern);
        tr_arena_deinit(&schema->arena);
        free(schema);
        return NULL;
}

void tr_schema_problem_deinit(struct tr_schema_problem *problem) {
        free(problem->path);
        free(problem->reason);
        *problem = (struct tr_schema_problem){ 0 };
}

void tr_schema_violation_deinit(struct tr_schema_violation *violation) {
        free(violation->path);
        free(violation->reason);
        *violation = (struct tr_schema_violation){ 0 };
}
