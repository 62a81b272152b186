/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_PAIRS_H
#define TR_COMMAND_PAIRS_H

#include "client/troupe.h"

/*
 * All that is known about one thing, for people: a line for each pair of a map, as in a table's cell. Programs have -j.
 */

/* 0, -EBADMSG where it is no map, -ENOMEM. */
int tr_pairs_print(const struct troupe_value *map);

#endif
