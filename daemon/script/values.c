/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The value types, opened together.
 */
#include "daemon/script/values.h"

#include "daemon/script/open.h"

void tr_values_open(lua_State *L) {
        tr_open_held(L);
        tr_open_null(L);
        tr_open_marks(L);
        tr_open_handles(L);
        tr_open_transfers(L);
        tr_open_classes(L);
}
