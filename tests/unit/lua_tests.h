/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LUA_TESTS_H
#define TESTS_LUA_TESTS_H

#include <check.h>
#include <stddef.h>

/*
 * Tests written in Lua: a file that answers what `tests()` gave it and it put functions into. Each of these runs in a
 * fake VM of its own (fake_vm.h).
 */

/* What main() returns: runs the file's tests (a path within the source tree) and `count` of check's own. */
int lua_tests_main(const char *suite, const char *file, const TTest *const *tests, size_t count);

#endif
