/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread is for is kept in the thread itself; a thread that never said so is TR_THREAD_OTHER. */
#include "config.h"

#include "daemon/base/thread.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

/* The kernel keeps 15 bytes of a thread's name and a NUL, and pthread_setname_np() refuses longer ones. */
#define NAME_SIZE 16

static _Thread_local enum tr_thread_role own_role = TR_THREAD_OTHER;

void tr_thread_enter(enum tr_thread_role role, const char *name) {
        char text[NAME_SIZE];

        own_role = role;
        /* the first thread's name is the process's, which has one already */
        if (gettid() == getpid())
                return;
        snprintf(text, sizeof(text), "troupe/%.*s", (int)(sizeof(text) - sizeof("troupe/")), name);
        /* a name is for people: a thread without one works as well */
        (void)pthread_setname_np(pthread_self(), text);
}

enum tr_thread_role tr_thread_role(void) {
        return own_role;
}
