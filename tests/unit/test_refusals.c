/* SPDX-License-Identifier: Apache-2.0 */
/* What the codec refuses: in refusals.lua. */
#include "tests/unit/lua_tests.h"

int main(void) {
        return lua_tests_main("refusals", "tests/unit/refusals.lua", NULL, 0);
}
