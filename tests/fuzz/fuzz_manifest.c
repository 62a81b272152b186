/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manifests of any bytes, as a file and as MessagePack from a peer: what is accepted has sense, and what is refused says where and
 * why, in text that may be shown.
 */
#include "config.h"

#include <jansson.h>
#include <string.h>

#include "daemon/contract/manifest.h"
#include "proto/limits.h"
#include "proto/name.h"
#include "proto/utf8.h"
#include "tests/fuzz/fuzz.h"

static const char *const seeds[] = {
        "{\"name\": \"media.streams\", \"module\": \"streams\", \"replicas\": 2, \"concurrency\": 8, \"lost\": \"reopen\",\n"
        "\"entity\": {\"properties\": {\"holder\": {\"type\": \"string\"}}}, \"operations\": {\"create\": {\"type\": \"assignment\",\n"
        "\"input\": {\"type\": \"object\", \"required\": [\"title\"]}, \"output\": true}, \"list\": {\"type\": \"observation\",\n"
        "\"scope\": \"entries\"}, \"reopen\": {\"type\": \"effect\"}, \"watch\": {\"stateful\": true, \"errors\": [\"NOT_HELD\"]}}}",
        "{\"name\": \"n\", \"process\": {\"command\": [\"c\", \"d\"], \"cwd\": \"w\", \"env\": {\"A\": \"b\"}, \"replicas\":\n"
        "[{\"instance\": \"left\", \"args\": {\"port\": [1, 2.5, null]}}, {}]}, \"operations\": {\"o\": {\"timeout\": \"5s\",\n"
        "\"doc\": \"d\"}}, \"heap\": \"1M\", \"allow\": [\"files\", \"native\"], \"queue\": 5, \"deliveries\": 1, \"attempts\": 2}",
        "{\"name\": \"n\", \"operations\": {\"o\": {\"input\": {\"$ref\": \"#/$defs/a\", \"$defs\": {\"a\": {\"type\": \"null\"}}}}}}",
        /* the same kind of thing as MessagePack */
        "\x82\xa4name\xa1n\xaaoperations\x82\xa1o\x81\xa5input\x90\xa1p\x82\xa7timeout\xcd\x01\x02\xa8stateful\xc3",
        "\x83\xa4name\xc4\x01n\xaaoperations\x81\xa1o\x90\xa8replicas\x91\x82\xa8instance\xa1i\xa4\x61rgs\xc0",
};

void fuzz_seeds(void (*add)(const uint8_t *data, size_t bytes)) {
        for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
                add((const uint8_t *)seeds[i], strlen(seeds[i]));
}

static void check_replicas(const struct tr_manifest_replicas *replicas) {
        FUZZ_CHECK(replicas->count <= TR_MANIFEST_REPLICAS_MAX && replicas->count <= (replicas->list ? UINT32_MAX : 0));
        for (uint32_t i = 0; i < replicas->count; i++) {
                const struct tr_manifest_replica *replica = &replicas->list[i];

                FUZZ_CHECK(!replica->instance || tr_name_is_valid(replica->instance, strlen(replica->instance)));
                FUZZ_CHECK((replica->args != NULL) == (replica->args_bytes > 0));
        }
}

static void check_operation(const struct tr_manifest *manifest, const struct tr_operation *operation) {
        FUZZ_CHECK(tr_manifest_find(manifest, operation->name, strlen(operation->name)) == operation);
        FUZZ_CHECK(tr_name_is_valid(operation->name, strlen(operation->name)));
        FUZZ_CHECK(!operation->entries || operation->type == TR_OPERATION_OBSERVATION);
        for (char **at = operation->errors; at && *at; at++)
                FUZZ_CHECK(tr_operation_declares(operation, *at, strlen(*at)));
}

static void check_manifest(const struct tr_manifest *manifest) {
        FUZZ_CHECK(tr_name_is_valid(manifest->name, strlen(manifest->name)));
        FUZZ_CHECK(manifest->operations_count > 0 && manifest->concurrency > 0 && manifest->deliveries > 0);
        FUZZ_CHECK(manifest->attempts > 0 && strlen(manifest->hash) == 64);
        FUZZ_CHECK(!manifest->heap_bytes || manifest->heap_bytes >= TR_HEAP_MIN);
        FUZZ_CHECK(manifest->module || manifest->replicas.count == 0);
        check_replicas(&manifest->replicas);
        for (uint32_t i = 0; i < manifest->operations_count; i++)
                check_operation(manifest, &manifest->operations[i]);
        if (!manifest->process)
                return;
        FUZZ_CHECK(manifest->process->command[0] && manifest->process->command[0][0]);
        FUZZ_CHECK(!manifest->process->cwd || manifest->process->cwd[0] == '/');
        check_replicas(&manifest->process->replicas);
}

static bool may_be_shown(const char *text) {
        size_t len = strlen(text);

        for (size_t i = 0; i < len; i++)
                if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
                        return false;
        return tr_utf8_is_valid(text, len);
}

static void check_answer(int r, struct tr_manifest_problem *problem, struct tr_manifest *manifest) {
        FUZZ_CHECK(r >= 0 && (r == 0) == (manifest != NULL) && (r == 0) == (problem->path == NULL));
        if (manifest)
                check_manifest(manifest);
        else
                FUZZ_CHECK(may_be_shown(problem->path) && problem->reason[0] && (!problem->path[0] || problem->path[0] == '/'));
        tr_manifest_problem_deinit(problem);
        tr_manifest_unref(manifest);
}

static void try_file(const uint8_t *data, size_t bytes) {
        struct tr_manifest_problem problem = { 0 };
        struct tr_manifest *manifest = NULL;
        int r;
        json_t *json = json_loadb((const char *)data, bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

        if (!json)
                return;
        r = tr_manifest_read(json, "/folder", &problem, &manifest);
        check_answer(r, &problem, manifest);
        json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
        struct tr_manifest_problem problem = { 0 };
        struct tr_manifest *manifest = NULL;
        int r;

        try_file(data, bytes);
        r = tr_manifest_parse(data, bytes, &problem, &manifest);
        check_answer(r, &problem, manifest);
        return 0;
}
