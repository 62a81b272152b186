/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_TESTS_FUZZ_FUZZ_H
#define TR_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/*
 * A fuzz target is one file with these two functions. It is linked with
 * libfuzzer.c where libFuzzer is to be had (--enable-fuzzing; `make fuzz`), and else with
 * standalone.c, as a test that runs the seeds and some thousand mutations of them.
 */

/* Tries one input; whatever is wrong ends the process. Answers 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Hands each seed to add(), which copies it. */
void fuzz_seeds(void (*add)(const uint8_t *data, size_t bytes));

/* All bytes in proto/vectors/ (vector_seeds.c). */
void fuzz_seeds_from_vectors(void (*add)(const uint8_t *data, size_t bytes));

/* A check that stays in every build. */
#define FUZZ_CHECK(condition) ((condition) ? (void)0 : fuzz_failed(#condition, __FILE__, __LINE__))
_Noreturn void fuzz_failed(const char *condition, const char *file, int line);

#endif
