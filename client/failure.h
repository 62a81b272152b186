/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CLIENT_FAILURE_H
#define TR_CLIENT_FAILURE_H

#include <stdbool.h>
#include <stddef.h>

#include "client/troupe.h"
#include "proto/code.h"

/* One error, and the memory that its texts are in. Zeroed is none. */
struct tr_failure {
        struct troupe_error error;
        bool is_set;
        void *memory;
};

/* Forgets it. */
void tr_failure_clear(struct tr_failure *failure);
/* What the library says itself. `message` must live for ever. */
void tr_failure_say(struct tr_failure *failure, enum tr_code code, const char *message);
/* Reads an error as the daemon said it, in any of its three forms, into memory of its own. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int tr_failure_read(struct tr_failure *failure, const void *data, size_t size);
/* A second one that says the same. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int tr_failure_copy(struct tr_failure *failure, const struct tr_failure *from);

#endif
