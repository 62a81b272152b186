/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_BASE_THREAD_H
#define TR_BASE_THREAD_H

#include <assert.h>

/*
 * Thread roles. A structure says which role may touch it; tr_thread_assert()
 * holds it to that in debug builds.
 */
enum tr_thread_role {
        TR_THREAD_OTHER,
        TR_THREAD_LOOP,  /* sockets, frames, routing, the daemon's timers */
        TR_THREAD_ACTOR, /* one actor's VM */
        TR_THREAD_LOG,
        TR_THREAD_STORE,
};

/* Names the calling thread, for assertions and for people ("troupe/NAME", cut to 15 bytes; the first thread keeps the
 * process's name). */
void tr_thread_enter(enum tr_thread_role role, const char *name);
enum tr_thread_role tr_thread_role(void);

#define tr_thread_assert(role_) assert(tr_thread_role() == (role_))

#endif
