/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interrupts. What a signal handler tells the program has to be global; it is three numbers, and nobody else has any.
 */
#include "client/command/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t happened; /* the signal, or 0 */
static volatile sig_atomic_t told;
static volatile sig_atomic_t patient;

static void on_signal(int number) {
        if (happened && !patient)
                _exit(128 + number);
        happened = number;
}

static void catch_signal(int number) {
        struct sigaction before, action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

        if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
                sigaction(number, &action, NULL);
}

void tr_interrupt_install(void) {
        catch_signal(SIGINT);
        catch_signal(SIGTERM);
}

bool tr_interrupt_happened(void) {
        return happened;
}

void tr_interrupt_be_patient(bool is_patient) {
        patient = is_patient;
}

int tr_interrupt_exit(void) {
        return 128 + happened;
}

int tr_interrupt_poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
        struct timespec timeout = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };
        sigset_t ours, before;
        int r = -1, error = EINTR;

        /* Blocked from the look at the flag until ppoll() lets them in, so that none falls between. */
        sigemptyset(&ours);
        sigaddset(&ours, SIGINT);
        sigaddset(&ours, SIGTERM);
        sigprocmask(SIG_BLOCK, &ours, &before);
        if (!happened || told) {
                r = ppoll(fds, count, timeout_ms < 0 ? NULL : &timeout, &before);
                error = errno;
        }
        told = happened;
        sigprocmask(SIG_SETMASK, &before, NULL);
        errno = error;
        return r;
}
