/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A door that actors and people knock at: a program in libevent's loop that listens under the name `door`, and goes on
 * doing so when the daemon is started again. `troupe ask door knock anna` answers, `troupe send door close` ends it.
 */
#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <troupe.h>

struct door {
        struct troupe *troupe;
        struct event_base *base;
        struct event *event; /* what the connection waits for */
        int status;
};

static void on_ready(evutil_socket_t fd, short what, void *userdata);

/* After anything that was done with the connection: what it waits for may be another descriptor, and another time. */
static void wait_for_more(struct door *door) {
        int fd = troupe_fd(door->troupe), events = troupe_events(door->troupe);
        int timeout_ms = troupe_timeout_ms(door->troupe);
        struct timeval timeout = { timeout_ms / 1000, timeout_ms % 1000 * 1000 };

        if (door->event)
                event_free(door->event);
        door->event = event_new(door->base, fd < 0 ? -1 : fd,
                                (events & POLLIN ? EV_READ : 0) | (events & POLLOUT ? EV_WRITE : 0), on_ready, door);
        if (!door->event || event_add(door->event, timeout_ms < 0 ? NULL : &timeout))
                event_base_loopbreak(door->base);
}

static void on_ready(evutil_socket_t fd, short what, void *userdata) {
        struct door *door = userdata;
        int r;

        (void)fd;
        do
                r = troupe_process(door->troupe, (what & EV_READ ? POLLIN : 0) | (what & EV_WRITE ? POLLOUT : 0));
        while (r == 1);
        if (r == -ENOTCONN)
                event_base_loopbreak(door->base);
        else
                wait_for_more(door);
}

static void on_message(struct troupe *troupe, const char *handler, const struct troupe_value *args,
                       struct troupe_asked *asked, void *userdata) {
        struct door *door = userdata;
        struct troupe_value name;

        (void)troupe;
        if (!strcmp(handler, "close"))
                event_base_loopexit(door->base, NULL);
        if (!asked)
                return;
        if (!strcmp(handler, "knock") && !troupe_value_at(args, 0, &name))
                troupe_reply(asked, "[sv]", "come in", &name);
        else
                troupe_refuse(asked, "this is a door: it can be knocked at", NULL);
}

static void on_published(struct troupe *troupe, int r, const struct troupe_value *answer, void *userdata) {
        struct door *door = userdata;

        (void)answer;
        if (!r) {
                printf("open\n");
                fflush(stdout);
                return;
        }
        /* where the connection broke, it is published again when there is another */
        if (r == -EREMOTEIO && !strcmp(troupe_error(troupe)->code, "disconnected"))
                return;
        fprintf(stderr, "door: %s\n", r == -EREMOTEIO ? troupe_error(troupe)->message : strerror(-r));
        door->status = 1;
        event_base_loopbreak(door->base);
}

static void publish(struct door *door) {
        char handle[TROUPE_HANDLE_SIZE];

        if (!troupe_own_handle(door->troupe, handle))
                troupe_publish_async(door->troupe, "door", handle, on_published, door, NULL);
}

static void on_link(struct troupe *troupe, enum troupe_link link, const char *method, const char *name,
                    void *userdata) {
        (void)troupe, (void)method, (void)name;
        if (link == TROUPE_LINK_RESTORED)
                publish(userdata);
}

int main(void) {
        struct door door = { .base = event_base_new() };
        int r = troupe_connect(&door.troupe, NULL, TROUPE_RECONNECT);

        if (!r)
                r = troupe_on_link(door.troupe, on_link, &door);
        if (!r)
                r = troupe_listen(door.troupe, on_message, &door, NULL);
        if (r) {
                fprintf(stderr, "door: %s\n", r == -EREMOTEIO ? troupe_error(door.troupe)->message : strerror(-r));
                door.status = 1;
        } else {
                publish(&door);
                wait_for_more(&door);
                event_base_dispatch(door.base);
        }
        if (door.event)
                event_free(door.event);
        troupe_free(door.troupe);
        event_base_free(door.base);
        return door.status;
}
