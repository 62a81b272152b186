/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_TESTS_UNIT_SUITE_H
#define TR_TESTS_UNIT_SUITE_H

#include <check.h>
#include <stddef.h>
#include <stdlib.h>

/* Seconds that one test may take: more than any does on a busy machine, or with a sanitizer. What takes longer hangs. */
#ifndef SUITE_TIMEOUT_S
#define SUITE_TIMEOUT_S 120
#endif

/* Runs a suite of one case, with what goes before and after each test (NULL: nothing); answers what main() returns. */
static inline int suite_run_with(const char *name, void (*setup)(void), void (*teardown)(void),
                                 const TTest *const *tests, size_t count) {
        Suite *suite = suite_create(name);
        TCase *tcase = tcase_create(name);
        SRunner *runner;
        int failed;

        tcase_set_timeout(tcase, SUITE_TIMEOUT_S);
        tcase_add_checked_fixture(tcase, setup, teardown);
        for (size_t i = 0; i < count; i++)
                tcase_add_test(tcase, tests[i]);
        suite_add_tcase(suite, tcase);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static inline int suite_run(const char *name, const TTest *const *tests, size_t count) {
        return suite_run_with(name, NULL, NULL, tests, count);
}

/* The rest of a test program: suite_main("name", test, test, ...), or with what goes before and after each. */
#define suite_main(name, ...) suite_main_with(name, NULL, NULL, __VA_ARGS__)
#define suite_main_with(name, setup, teardown, ...)                                                     \
        int main(void) {                                                                                \
                const TTest *const tests[] = { __VA_ARGS__ };                                           \
                return suite_run_with(name, setup, teardown, tests, sizeof(tests) / sizeof(tests[0]));  \
        }                                                                                               \
        _Static_assert(1, "takes the semicolon")

#endif
