/* SPDX-License-Identifier: Apache-2.0 */
/* Every piece of bytes in proto/vectors/, wherever in a file it is. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/vectors.h"

static void add_bytes(const json_t *hex, void (*add)(const uint8_t *data, size_t bytes)) {
        size_t bytes;
        uint8_t *data = vectors_bytes(hex, &bytes);

        add(data, bytes);
        free(data);
}

static void add_member(const char *name, json_t *value, void (*add)(const uint8_t *data, size_t bytes)) {
        const char *key;
        json_t *item;
        size_t i;

        if (strcmp(name, "hex") == 0)
                add_bytes(value, add);
        else if (strcmp(name, "also") == 0)
                json_array_foreach(value, i, item)
                        add_bytes(item, add);
        else if (strcmp(name, "value") != 0 && strcmp(name, "plain") != 0 && strcmp(name, "frame") != 0)
                json_object_foreach(value, key, item)
                        add_member(key, item, add);
}

void fuzz_seeds_from_vectors(void (*add)(const uint8_t *data, size_t bytes)) {
        static const char *const files[] = { "frames.json", "values.json", "errors.json", "invalid.json" };

        for (size_t file = 0; file < sizeof(files) / sizeof(files[0]); file++) {
                json_t *cases = vectors_load(files[file]), *one;
                size_t i;

                json_array_foreach(cases, i, one)
                        add_member("", one, add);
                json_decref(cases);
        }
}
