/* SPDX-License-Identifier: Apache-2.0 */
/* libtroupe over the vectors: test_vectors_by_hand.py says how it is talked to. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/troupe.h"

/* Reads digits into bytes, in their own place. */
static size_t unhex(char *text) {
        size_t bytes = 0;

        for (unsigned int byte; sscanf(text + 2 * bytes, "%2x", &byte) == 1; bytes++)
                text[bytes] = (char)byte;
        return bytes;
}

int main(void) {
        struct troupe *t;
        char *line = NULL;
        size_t room;

        if (troupe_connect(&t, NULL, 0))
                return 1;
        puts("3"); /* as the others, who count first */
        for (fflush(stdout); getline(&line, &room, stdin) > 0; fflush(stdout)) {
                char *at = line, *target = strsep(&at, " "), *handler = strsep(&at, " ");
                struct troupe_value answer;
                size_t bytes = unhex(at);

                if (troupe_ask(t, target, handler, NULL, &answer, "m", at, bytes)) {
                        const struct troupe_error *error = troupe_error(t);

                        fprintf(stderr, "%s: %s\n", error ? error->code : "?", error ? error->message : "?");
                        return 1;
                }
                for (size_t i = 0; i < answer.size; i++)
                        printf("%02x", ((const uint8_t *)answer.data)[i]);
                puts("");
        }
        free(line);
        troupe_free(t);
        return 0;
}
