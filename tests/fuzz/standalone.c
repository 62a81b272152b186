/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target without libFuzzer: every seed, every seed cut short, and a fixed
 * number of mutations. The same number (TROUPE_SEED, 1 unless set) gives the same
 * inputs, so that what was found once is found again; TROUPE_RUNS says how many.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

#define SEEDS_MAX 1024
#define INPUT_MAX 2048
#define RUNS_DEFAULT 100000

struct input {
        size_t bytes;
        uint8_t data[INPUT_MAX];
};

static struct input *seeds[SEEDS_MAX];
static size_t seeds_count;
static struct input present;
static uint64_t state;

_Noreturn void fuzz_failed(const char *condition, const char *file, int line) {
        fprintf(stderr, "%s:%d: %s\ninput: ", file, line, condition);
        for (size_t i = 0; i < present.bytes; i++)
                fprintf(stderr, "%02x", present.data[i]);
        fprintf(stderr, "\n");
        abort();
}

static void add_seed(const uint8_t *data, size_t bytes) {
        struct input *seed;

        if (seeds_count == SEEDS_MAX || bytes > INPUT_MAX)
                return;
        seed = malloc(sizeof(*seed));
        if (!seed)
                abort();
        seed->bytes = bytes;
        memcpy(seed->data, data, bytes);
        seeds[seeds_count++] = seed;
}

/* xorshift64*: the same everywhere, which rand() is not. */
static uint64_t draw(uint64_t below) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        return below ? (state * UINT64_C(0x2545f4914f6cdd1d) >> 16) % below : 0;
}

/* The target sees memory of exactly the input's size. */
static void run(void) {
        uint8_t *data = malloc(present.bytes > 0 ? present.bytes : 1);

        if (!data)
                abort();
        memcpy(data, present.data, present.bytes);
        (void)LLVMFuzzerTestOneInput(data, present.bytes);
        free(data);
}

static void insert(size_t at, const uint8_t *data, size_t bytes) {
        if (present.bytes + bytes > INPUT_MAX)
                return;
        memmove(present.data + at + bytes, present.data + at, present.bytes - at);
        memcpy(present.data + at, data, bytes);
        present.bytes += bytes;
}

static void mutate(void) {
        /* First bytes of values, and ends of ranges: where decoders go wrong. */
        static const uint8_t telling[] = { 0x00, 0x7f, 0x80, 0x90, 0xa0, 0xc0, 0xc1, 0xc4, 0xc7, 0xc9, 0xca, 0xcb, 0xcf,
                                           0xd3, 0xd4, 0xd8, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xe0, 0xff, '"',  '{' };
        size_t at = draw(present.bytes), from, bytes;
        const struct input *other;
        uint8_t byte;

        switch (draw(6)) {
        case 0:
                if (present.bytes > 0)
                        present.data[at] ^= (uint8_t)(1 << draw(8));
                break;
        case 1:
                if (present.bytes > 0)
                        present.data[at] = telling[draw(sizeof(telling))];
                break;
        case 2:
                byte = telling[draw(sizeof(telling))];
                insert(at, &byte, 1);
                break;
        case 3:
                bytes = draw(present.bytes - at + 1);
                memmove(present.data + at, present.data + at + bytes, present.bytes - at - bytes);
                present.bytes -= bytes;
                break;
        case 4:
                other = seeds[draw(seeds_count)];
                from = draw(other->bytes);
                insert(at, other->data + from, draw(other->bytes - from + 1));
                break;
        case 5:
                present.bytes = at;
                break;
        }
}

static uint64_t setting(const char *name, uint64_t otherwise) {
        const char *text = getenv(name);

        return text ? strtoull(text, NULL, 10) : otherwise;
}

int main(void) {
        uint64_t seed = setting("TROUPE_SEED", 1), runs = setting("TROUPE_RUNS", RUNS_DEFAULT);

        fuzz_seeds(add_seed);
        if (seeds_count == 0)
                fuzz_failed("there are seeds", __FILE__, __LINE__);
        fprintf(stderr, "TROUPE_SEED=%" PRIu64 " TROUPE_RUNS=%" PRIu64 ", %zu seeds\n", seed, runs, seeds_count);
        state = seed ? seed : 1;

        for (size_t i = 0; i < seeds_count; i++)
                for (present = *seeds[i];; present.bytes--) {
                        run();
                        if (present.bytes == 0)
                                break;
                }
        for (uint64_t i = 0; i < runs; i++) {
                present = *seeds[draw(seeds_count)];
                for (uint64_t mutations = 1 + draw(6); mutations > 0; mutations--)
                        mutate();
                run();
        }
        for (size_t i = 0; i < seeds_count; i++)
                free(seeds[i]);
        return EXIT_SUCCESS;
}
