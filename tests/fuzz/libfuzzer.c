/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libFuzzer does not know: the seeds. They are written into the first folder
 * that the program is given, where libFuzzer reads them and adds what it finds.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

static const char *folder;
static unsigned written;

_Noreturn void fuzz_failed(const char *condition, const char *file, int line) {
        fprintf(stderr, "%s:%d: %s\n", file, line, condition);
        abort();
}

static void write_seed(const uint8_t *data, size_t bytes) {
        char path[4096];
        FILE *file;

        snprintf(path, sizeof(path), "%s/seed-%04u", folder, written++);
        file = fopen(path, "wb");
        if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0) {
                perror(path);
                exit(EXIT_FAILURE);
        }
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
        for (int i = 1; i < *argc && !folder; i++)
                if ((*argv)[i][0] != '-')
                        folder = (*argv)[i];
        if (folder)
                fuzz_seeds(write_seed);
        return 0;
}
