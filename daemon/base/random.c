/* SPDX-License-Identifier: Apache-2.0 */
/* Randomness is the kernel's alone: handles are permissions, so nothing here is seeded, buffered or shared. */
#include "daemon/base/random.h"

#include <errno.h>
#include <sys/random.h>

int tr_random_bytes(void *ret_bytes, size_t len) {
        uint8_t *at = ret_bytes;

        while (len > 0) {
                /* up to 256 bytes come whole; longer reads may be cut short by a signal */
                ssize_t got = getrandom(at, len, 0);

                if (got < 0) {
                        if (errno == EINTR)
                                continue;
                        return tr_error_origin(-errno);
                }
                at += got;
                len -= (size_t)got;
        }
        return 0;
}
