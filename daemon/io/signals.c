/* SPDX-License-Identifier: Apache-2.0 */
/* libevent turns a signal into an event through a descriptor, so that what it causes may do anything. */
#include "daemon/io/signals.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>

#include "daemon/io/loop.h"

static const int wanted[] = { SIGTERM, SIGINT, SIGHUP };

#define COUNT (sizeof(wanted) / sizeof(*wanted))

struct tr_signals {
        void (*on_signal)(void *userdata, int signal);
        void *userdata;
        struct event *events[COUNT];
};

static void on_event(evutil_socket_t signal, short what, void *userdata) {
        struct tr_signals *signals = userdata;

        signals->on_signal(signals->userdata, (int)signal);
}

int tr_signals_new(struct tr_loop *loop, void (*on_signal)(void *userdata, int signal), void *userdata,
                   struct tr_signals **ret_signals) {
        struct tr_signals *signals = calloc(1, sizeof(*signals));

        if (!signals)
                return tr_error_origin(-ENOMEM);
        signals->on_signal = on_signal;
        signals->userdata = userdata;
        for (size_t i = 0; i < COUNT; i++) {
                signals->events[i] = evsignal_new(tr_loop_base(loop), wanted[i], on_event, signals);
                if (!signals->events[i] || event_add(signals->events[i], NULL) < 0) {
                        tr_signals_free(signals);
                        return tr_error_origin(-ENOMEM);
                }
        }
        *ret_signals = signals;
        return 0;
}

void tr_signals_free(struct tr_signals *signals) {
        if (!signals)
                return;
        for (size_t i = 0; i < COUNT; i++)
                if (signals->events[i])
                        event_free(signals->events[i]);
        free(signals);
}
