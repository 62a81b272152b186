/* SPDX-License-Identifier: Apache-2.0 */
/* What a manifest is once it was read (manifest_read.c). */
#include "config.h"

#include "daemon/contract/manifest.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/contract/schema.h"

const char *const tr_allow_names[] = { "files", "commands", "native", NULL };

void tr_manifest_problem_deinit(struct tr_manifest_problem *problem) {
        free(problem->path);
        free(problem->reason);
        *problem = (struct tr_manifest_problem){ 0 };
}

static void texts_free(char **texts) {
        for (char **at = texts; at && *at; at++)
                free(*at);
        free(texts);
}

void tr_manifest_replicas_deinit(struct tr_manifest_replicas *replicas) {
        for (uint32_t i = 0; i < replicas->count; i++) {
                free(replicas->list[i].instance);
                free(replicas->list[i].args);
        }
        free(replicas->list);
        *replicas = (struct tr_manifest_replicas){ 0 };
}

static void process_free(struct tr_manifest_process *process) {
        if (!process)
                return;
        texts_free(process->command);
        free(process->cwd);
        texts_free(process->env);
        tr_manifest_replicas_deinit(&process->replicas);
        free(process);
}

static void operation_deinit(struct tr_operation *operation) {
        free(operation->name);
        tr_schema_unref(operation->input);
        tr_schema_unref(operation->output);
        texts_free(operation->errors);
        free(operation->doc);
}

struct tr_manifest *tr_manifest_ref(struct tr_manifest *manifest) {
        /* relaxed: who copies a reference has one */
        atomic_fetch_add_explicit(&manifest->refs, 1, memory_order_relaxed);
        return manifest;
}

void tr_manifest_unref(struct tr_manifest *manifest) {
        /* acq_rel: the last one sees all that the others did with it */
        if (!manifest || atomic_fetch_sub_explicit(&manifest->refs, 1, memory_order_acq_rel) != 1)
                return;
        free(manifest->name);
        free(manifest->module);
        tr_manifest_replicas_deinit(&manifest->replicas);
        process_free(manifest->process);
        tr_schema_unref(manifest->entity);
        free(manifest->lost);
        for (uint32_t i = 0; i < manifest->operations_count; i++)
                operation_deinit(&manifest->operations[i]);
        free(manifest->operations);
        free(manifest);
}

/* As strcmp(), of a text that ends after len bytes. */
static int compare(const char *name, size_t len, const char *other) {
        int order = strncmp(name, other, len);

        return order == 0 && other[len] ? -1 : order;
}

const struct tr_operation *tr_manifest_find(const struct tr_manifest *manifest, const char *name, size_t len) {
        uint32_t low = 0, high = manifest->operations_count;

        /* a NUL would hide what is behind it */
        if (memchr(name, '\0', len))
                return NULL;
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;
                int order = compare(name, len, manifest->operations[middle].name);

                if (order == 0)
                        return &manifest->operations[middle];
                if (order < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return NULL;
}

bool tr_operation_declares(const struct tr_operation *operation, const char *error, size_t len) {
        for (char **at = operation->errors; at && *at; at++)
                if (strlen(*at) == len && memcmp(*at, error, len) == 0)
                        return true;
        return false;
}
