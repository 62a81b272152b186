/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_BASE_CLEANUP_H
#define TR_BASE_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

/* Cleanup by attribute: declared at the top of a block, handed over by an explicit steal. */
#define TR_CLEANUP(function) __attribute__((cleanup(function)))

#define TR_DEFINE_CLEANUP(type, function)                    \
        static inline void function##_cleanup_(type **p) {   \
                if (*p)                                      \
                        function(*p);                        \
        }

/* The value, and the variable is NULL from here on. */
#define tr_steal(variable)                           \
        ({                                           \
                __typeof__(variable) stolen_ = (variable); \
                (variable) = NULL;                   \
                stolen_;                             \
        })

static inline void tr_free_cleanup_(void *p) {
        free(*(void **)p);
}
#define TR_AUTO_FREE TR_CLEANUP(tr_free_cleanup_)

static inline void tr_close_cleanup_(int *fd) {
        if (*fd >= 0)
                close(*fd);
}
#define TR_AUTO_CLOSE TR_CLEANUP(tr_close_cleanup_)

#endif
