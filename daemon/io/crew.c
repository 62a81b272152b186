/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crew. A unit is what is known of one component, a seat one of its processes as the manifest lists them, a hand one process that was
 * started for a seat.
 *
 * All of it is the loop thread's, but for the list of components that somebody has asked to look at, and for a hand's asker, which hears on any
 * thread that the serving of its connection is over. A hand is counted: the seat's reference, the connection's (until it says that it has
 * ended), the watch's. Each process counts in its component (tr_component_enter_staff), which does not end before it.
 */
#include "config.h"

#include "daemon/io/crew.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/lock.h"
#include "daemon/base/log.h"
#include "daemon/core/component.h"
#include "daemon/core/replica.h"
#include "daemon/core/retry.h"
#include "daemon/core/system.h"
#include "daemon/io/child.h"
#include "daemon/io/loop.h"
#include "daemon/io/server.h"

#define SERVE_NS (10 * TR_NS_PER_S)
/* How long one may take to end that has closed its socket, before it is told to: most close it by ending. */
#define CLOSED_NS (1 * TR_NS_PER_S)

struct hand {
        struct tr_asker asker; /* of the watch on its serving */
        _Atomic uint32_t refs;
        struct tr_list link; /* in the unit's hands, until its process has ended */
        struct seat *seat;     /* while its process has not ended */
        struct tr_loop *loop;
        struct tr_system *system;
        uint64_t grace_ns;
        struct tr_manifest *manifest; /* strong: as which it was started */
        struct tr_child *child;
        struct tr_replica *replica; /* strong; NULL: it does not serve, or no more */
        struct tr_work left;        /* its serving is over */
        struct tr_timer timer;      /* until it has to serve; then, once it was told to end, until it is killed */
        bool closed;                /* its connection has ended */
        bool leaving;               /* it was told to end */
        bool late;                  /* it did not serve in time */
        char name[TR_NAME_MAX + 16];
};

struct seat {
        struct unit *unit;
        uint32_t number;
        struct hand *starting; /* borrowed from the unit's hands, as is the next */
        struct hand *current;
        struct tr_backoff backoff;
        uint64_t began_ns;
        bool had_one; /* that served */
        struct tr_timer pause;
};

struct unit {
        struct tr_crew *crew;
        struct tr_list link;
        struct tr_component *component; /* strong */
        struct seat *seats;             /* as many as any manifest had, up to seats_room */
        uint32_t seats_count;
        struct tr_list hands;
};

/* A component that was asked to be looked at. */
struct request {
        struct tr_list link;
        struct tr_component *component; /* strong */
};

struct tr_crew {
        struct tr_loop *loop;
        struct tr_system *system;
        struct tr_server *server;
        uint64_t grace_ns;
        struct tr_list units;
        struct tr_work work;
        struct tr_lock lock; /* nothing else is acquired under it */
        struct tr_list requests TR_GUARDED_BY(lock);
};

/* Hands */

static void hand_unref(struct hand *hand, uint32_t count) {
        if (atomic_fetch_sub_explicit(&hand->refs, count, memory_order_acq_rel) != count)
                return;
        tr_manifest_unref(hand->manifest);
        free(hand);
}

static struct hand *hand_ref(struct hand *hand) {
        atomic_fetch_add_explicit(&hand->refs, 1, memory_order_relaxed);
        return hand;
}

static void hand_set_timer(struct hand *hand, uint64_t after_ns) {
        struct tr_system *system = hand->system;
        tr_system_clear_timer(system, &hand->timer);
        if (after_ns == TR_NEVER)
                return;
        if (tr_system_set_timer(system, &hand->timer, tr_clock_deadline_ns(after_ns)) < 0)
                tr_log(TR_LOG_ERROR, "%s: out of memory for its timer", hand->name);
}

/* It is told to end; killed where it has not after the grace. */
static void hand_leave(struct hand *hand) {
        if (hand->leaving)
                return;
        hand->leaving = true;
        hand_set_timer(hand, hand->grace_ns);
        tr_child_signal(hand->child, SIGTERM);
}

static void on_hand_timer(struct tr_timer *timer) {
        struct hand *hand = tr_container_of(timer, struct hand, timer);
        if (hand->closed && !hand->leaving) {
                hand_leave(hand);
                return;
        }
        if (!hand->leaving) {
                hand->late = true;
                tr_log(TR_LOG_WARNING, "%s: it did not serve within %d s", hand->name, (int)(SERVE_NS / TR_NS_PER_S));
        }
        hand->leaving = true;
        tr_child_signal(hand->child, SIGKILL);
}

/* Its serving is over: it was withdrawn, retired for its successor, or its component stops, or its socket is closed. */
static void on_hand_left(struct tr_work *work) {
        struct hand *hand = tr_container_of(work, struct hand, left);
        if (hand->child && !hand->closed)
                hand_leave(hand);
        hand_unref(hand, 1);
}

static void hand_post_left(struct hand *hand) {
        hand_ref(hand);
        if (!tr_loop_post(hand->loop, &hand->left))
                hand_unref(hand, 1); /* it is posted already; the loop has not got to it, so this is not the last */
}

static struct hand *hand_of(struct tr_asker *asker) {
        return tr_container_of(asker, struct hand, asker);
}

static void on_serving_resolved(struct tr_asker *asker, struct tr_message *message, const void *value, size_t bytes, bool more) {
        hand_post_left(hand_of(asker));
}

static void on_serving_rejected(struct tr_asker *asker, struct tr_message *message, struct tr_failure *failure, enum tr_ran ran,
                                bool more) {
        hand_post_left(hand_of(asker));
}

static void on_asker_ref(struct tr_asker *asker) {
        hand_ref(hand_of(asker));
}

static void on_asker_unref(struct tr_asker *asker, uint32_t count) {
        hand_unref(hand_of(asker), count);
}

static const struct tr_asker_ops hand_asker_ops = {
        .resolve = on_serving_resolved,
        .reject = on_serving_rejected,
        .ref = on_asker_ref,
        .unref = on_asker_unref,
};

/* Its connection */

static void seat_start(struct seat *seat);

/* It serves: from now on it is the one in its seat, and the one before has retired. */
static void on_serves(void *userdata, struct tr_replica *replica) {
        struct hand *hand = userdata;
        if (!hand->child) { /* it has ended, and this is the last that it said: its seat is another's, or there is none */
                tr_replica_retire(replica);
                return;
        }
        struct seat *seat = hand->seat;
        struct tr_message *watch = tr_message_new(TR_MESSAGE_DONE, "", 0, NULL, 0, 0);
        struct tr_target *target = tr_replica_target(replica);
        if (!hand->leaving)
                hand_set_timer(hand, TR_NEVER);
        tr_replica_unref(hand->replica);
        hand->replica = tr_replica_ref(replica);
        if (seat->starting == hand) {
                seat->starting = NULL;
                seat->current = hand;
                if (seat->had_one)
                        tr_component_count_restarted(seat->unit->component);
                seat->had_one = true;
        }
        if (watch && target) {
                watch->asker = &hand_ref(hand)->asker;
                tr_target_watch(target, tr_message_ref(watch));
        } else {
                hand_leave(hand); /* nobody would notice that it serves no more */
        }
        tr_message_unref(watch);
        tr_target_unref(target);
}

/* What the connection's reference was for. */
static void on_connection_ended(void *userdata) {
        struct hand *hand = userdata;
        hand->closed = true;
        if (hand->child && !hand->leaving)
                hand_set_timer(hand, CLOSED_NS);
        hand_unref(hand, 1);
}

/* Seats */

static bool seat_is_wanted(const struct seat *seat, const struct tr_manifest *manifest) {
        struct tr_component *component = seat->unit->component;
        tr_lock_acquire(&component->lock);
        bool stopping = component->stopping;
        tr_lock_release(&component->lock);
        return !stopping && manifest->process && seat->number < manifest->process->replicas.count;
}

static void on_pause(struct tr_timer *timer) {
        seat_start(tr_container_of(timer, struct seat, pause));
}

static void seat_pause(struct seat *seat, uint64_t pause_ns) {
        struct tr_system *system = seat->unit->crew->system;
        tr_system_clear_timer(system, &seat->pause);
        if (tr_system_set_timer(system, &seat->pause, tr_clock_deadline_ns(pause_ns)) < 0)
                tr_log(TR_LOG_ERROR, "component %s: out of memory for the timer of a process", seat->unit->component->target.label);
}

/* Nobody is in the seat any more, or could be brought there: after a pause, another one. */
static void seat_again(struct seat *seat, bool failed, const char *how) {
        struct tr_component *component = seat->unit->component;
        struct tr_manifest *manifest = tr_component_manifest(component);
        bool wanted = seat_is_wanted(seat, manifest);
        tr_manifest_unref(manifest);
        if (!wanted)
                return;
        bool was_given_up = seat->backoff.slowed;
        uint64_t pause_ns = tr_retry_pause_ns(&seat->backoff, seat->began_ns, failed);
        tr_log(failed ? TR_LOG_WARNING : TR_LOG_INFO, "component %s: process %" PRIu32 " %s; it is replaced in %" PRIu64 " ms",
               component->target.label, seat->number, how, pause_ns / TR_NS_PER_MS);
        if (seat->backoff.slowed && !was_given_up) {
                struct tr_failure *failure = tr_failure_new(TR_CODE_FAULT, "%s", how);
                tr_retry_tell_given_up(&component->target, "process", seat->number, failure);
                tr_failure_unref(failure);
        }
        seat_pause(seat, pause_ns);
}

static void unit_try_end(struct unit *unit);

/* Its process has ended. */
static void on_ended(void *userdata, int status) {
        struct hand *hand = userdata;
        struct seat *seat = hand->seat;
        struct unit *unit = seat->unit;
        bool was_in_it = seat->starting == hand || seat->current == hand;
        bool failed = hand->late || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        char how[64];
        tr_child_status_text(status, how, sizeof(how));
        tr_system_clear_timer(unit->crew->system, &hand->timer);
        tr_child_free(tr_steal(hand->child));
        if (hand->replica) /* its connection may not know yet; who calls is not to wait for that */
                tr_replica_died(hand->replica);
        tr_replica_unref(tr_steal(hand->replica));
        if (seat->starting == hand)
                seat->starting = NULL;
        if (seat->current == hand)
                seat->current = NULL;
        tr_list_unlink(&hand->link);
        if (was_in_it && !seat->starting)
                seat_again(seat, failed, how);
        else if (!was_in_it)
                tr_log(TR_LOG_DEBUG, "%s: %s", hand->name, how);
        tr_component_leave_staff(unit->component);
        hand_unref(hand, 1);
        unit_try_end(unit);
}

/* The daemon's end of its sockets becomes a connection. 0 or a negative errno. */
static int hand_adopt(struct hand *hand, int take_fd) {
        struct seat *seat = hand->seat;
        const struct tr_manifest_replica *as = &hand->manifest->process->replicas.list[seat->number];
        const struct tr_adoption adoption = {
                .component = seat->unit->component->target.label,
                .instance = as->instance,
                .index = seat->number,
                .manifest = hand->manifest,
                .started_as = as,
                .successor_of = seat->current ? seat->current->replica : NULL,
                .pid = (int32_t)tr_child_pid(hand->child),
                .serves = on_serves,
                .ended = on_connection_ended,
                .userdata = hand_ref(hand),
        };
        int r = tr_server_adopt(seat->unit->crew->server, take_fd, &adoption);
        if (r < 0)
                hand_unref(hand, 1);
        return tr_error_fold(r);
}

/* Its process, and what connects it. 0 or a negative errno. */
static int hand_start(struct hand *hand) {
        const struct tr_manifest_process *process = hand->manifest->process;
        int fds[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return tr_error_origin(-errno);
        if (fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0) { /* the process's own end blocks, as it expects */
                int r = -errno;
                close(fds[0]);
                close(fds[1]);
                return tr_error_origin(r);
        }
        const struct tr_child_options options = {
                .loop = hand->loop,
                .name = hand->name,
                .command = process->command,
                .cwd = process->cwd,
                .env = process->env,
                .fd = fds[1],
                .ended = on_ended,
                .userdata = hand,
        };
        int r = tr_child_start(&options, &hand->child);
        close(fds[1]);
        if (r < 0) {
                close(fds[0]);
                return r;
        }
        return hand_adopt(hand, fds[0]);
}

static struct hand *hand_new(struct seat *seat, struct tr_manifest *manifest) {
        struct hand *hand = calloc(1, sizeof(*hand));
        if (!hand)
                return NULL;
        hand->asker.ops = &hand_asker_ops;
        atomic_init(&hand->refs, 1);
        hand->seat = seat;
        hand->loop = seat->unit->crew->loop;
        hand->system = seat->unit->crew->system;
        hand->grace_ns = seat->unit->crew->grace_ns;
        hand->manifest = tr_manifest_ref(manifest);
        hand->timer.fire = on_hand_timer;
        tr_work_init(&hand->left, on_hand_left);
        snprintf(hand->name, sizeof(hand->name), "%s/%" PRIu32, manifest->name, seat->number);
        tr_list_append(&seat->unit->hands, &hand->link);
        return hand;
}

static void seat_start(struct seat *seat) {
        struct unit *unit = seat->unit;
        struct tr_manifest *manifest = tr_component_manifest(unit->component);
        if (!seat->starting && seat_is_wanted(seat, manifest)) {
                struct hand *hand = hand_new(seat, manifest);
                int r = hand ? 0 : -ENOMEM;
                seat->began_ns = tr_clock_ns();
                if (r == 0) {
                        /* before it could end */
                        tr_component_enter_staff(unit->component);
                        r = hand_start(hand);
                }
                if (r == 0) {
                        seat->starting = hand;
                        hand_set_timer(hand, SERVE_NS);
                } else {
                        char how[160];
                        snprintf(how, sizeof(how), "could not be started (%s): %s", manifest->process->command[0],
                                 strerrordesc_np(-r) ? strerrordesc_np(-r) : "unknown error");
                        if (hand && hand->child) { /* it runs, and nothing is known of it: its end will be told */
                                hand_leave(hand);
                        } else if (hand) {
                                tr_list_unlink(&hand->link);
                                tr_component_leave_staff(unit->component);
                                hand_unref(hand, 1);
                        }
                        seat_again(seat, true, how);
                }
        }
        tr_manifest_unref(manifest);
}

/* Units */

static void unit_free(struct unit *unit) {
        for (uint32_t i = 0; i < unit->seats_count; i++)
                tr_system_clear_timer(unit->crew->system, &unit->seats[i].pause);
        tr_list_unlink(&unit->link);
        tr_component_unref(unit->component);
        free(unit->seats);
        free(unit);
}

/* It goes when its component has ended and none of its processes is left. */
static void unit_try_end(struct unit *unit) {
        if (tr_list_is_empty(&unit->hands) && tr_target_has_ended(&unit->component->target))
                unit_free(unit);
}

static struct unit *unit_of(struct tr_crew *crew, struct tr_component *component) {
        struct unit *unit;
        tr_list_for_each(unit, &crew->units, link)
                if (unit->component == component)
                        return unit;
        unit = calloc(1, sizeof(*unit));
        /* hands point at their seats, so there is room for as many as there may ever be */
        struct seat *seats = unit ? calloc(TR_MANIFEST_REPLICAS_MAX, sizeof(*seats)) : NULL;
        if (!seats) {
                free(unit);
                return NULL;
        }
        unit->crew = crew;
        unit->component = tr_component_ref(component);
        unit->seats = seats;
        tr_list_init(&unit->hands);
        tr_list_append(&crew->units, &unit->link);
        return unit;
}

static void unit_grow(struct unit *unit, uint32_t count) {
        for (; unit->seats_count < count; unit->seats_count++) {
                struct seat *seat = &unit->seats[unit->seats_count];
                seat->unit = unit;
                seat->number = unit->seats_count;
                seat->pause.fire = on_pause;
                tr_backoff_init(&seat->backoff, TR_RETRY_MIN_NS, TR_RETRY_MAX_NS, TR_RETRY_RESET_NS);
        }
}

/* Starts who is missing, and a successor of who is of another manifest; tells those to leave that are not wanted any more. */
static void seat_see(struct seat *seat, struct tr_manifest *manifest, bool killed) {
        struct unit *unit = seat->unit;
        bool wanted = seat_is_wanted(seat, manifest);
        struct hand *hand;
        if (!wanted)
                tr_list_for_each(hand, &unit->hands, link) {
                        if (hand->seat != seat)
                                continue;
                        if (killed)
                                tr_child_signal(hand->child, SIGKILL);
                        else if (hand->replica)
                                tr_replica_retire(hand->replica); /* and it leaves when it has answered what it holds */
                        else
                                hand_leave(hand);
                }
        else if (!seat->starting && (!seat->current || seat->current->manifest != manifest))
                seat_start(seat);
}

static void crew_see(struct tr_crew *crew, struct tr_component *component) {
        struct tr_manifest *manifest = tr_component_manifest(component);
        struct unit *unit = unit_of(crew, component);
        if (unit) {
                tr_lock_acquire(&component->lock);
                bool killed = component->killed;
                tr_lock_release(&component->lock);
                unit_grow(unit, manifest->process ? manifest->process->replicas.count : 0);
                for (uint32_t i = 0; i < unit->seats_count; i++)
                        seat_see(&unit->seats[i], manifest, killed);
                unit_try_end(unit);
        } else {
                tr_log(TR_LOG_ERROR, "component %s: out of memory for its processes", manifest->name);
        }
        tr_manifest_unref(manifest);
}

/* Requests */

static struct request *crew_take(struct tr_crew *crew) {
        tr_lock_acquire(&crew->lock);
        struct request *request = tr_list_first(&crew->requests, struct request, link);
        if (request)
                tr_list_unlink(&request->link);
        tr_lock_release(&crew->lock);
        return request;
}

static void on_work(struct tr_work *work) {
        struct tr_crew *crew = tr_container_of(work, struct tr_crew, work);
        struct request *request;
        while ((request = crew_take(crew))) {
                crew_see(crew, request->component);
                tr_component_leave_staff(request->component);
                tr_component_unref(request->component);
                free(request);
        }
}

void tr_crew_see(struct tr_crew *crew, struct tr_component *component) {
        struct request *request = calloc(1, sizeof(*request));
        if (!request) {
                tr_log(TR_LOG_ERROR, "component %s: out of memory for its processes", component->target.label);
                return;
        }
        /* The component does not end before this was seen to. */
        request->component = tr_component_ref(component);
        tr_component_enter_staff(component);
        tr_lock_acquire(&crew->lock);
        tr_list_append(&crew->requests, &request->link);
        tr_lock_release(&crew->lock);
        tr_loop_post(crew->loop, &crew->work);
}

int tr_crew_new(struct tr_loop *loop, struct tr_system *system, struct tr_server *server, uint64_t grace_ns,
                struct tr_crew **ret_crew) {
        struct tr_crew *crew = calloc(1, sizeof(*crew));
        if (!crew)
                return tr_error_origin(-ENOMEM);
        crew->loop = loop;
        crew->system = system;
        crew->server = server;
        crew->grace_ns = grace_ns;
        tr_list_init(&crew->units);
        tr_list_init(&crew->requests);
        tr_lock_init(&crew->lock);
        tr_work_init(&crew->work, on_work);
        *ret_crew = crew;
        return 0;
}

void tr_crew_set_grace(struct tr_crew *crew, uint64_t grace_ns) {
        crew->grace_ns = grace_ns;
}

static void hand_discard(struct hand *hand) {
        tr_system_clear_timer(hand->system, &hand->timer);
        if (tr_loop_forget(hand->loop, &hand->left))
                hand_unref(hand, 1);
        tr_child_free(tr_steal(hand->child));
        tr_replica_unref(tr_steal(hand->replica));
        tr_list_unlink(&hand->link);
        tr_component_leave_staff(hand->seat->unit->component);
        hand_unref(hand, 1);
}

void tr_crew_free(struct tr_crew *crew) {
        struct request *request;
        struct unit *unit;
        struct hand *hand;
        if (!crew)
                return;
        tr_loop_forget(crew->loop, &crew->work);
        while ((request = crew_take(crew))) {
                tr_component_leave_staff(request->component);
                tr_component_unref(request->component);
                free(request);
        }
        tr_list_for_each(unit, &crew->units, link) {
                tr_list_for_each(hand, &unit->hands, link)
                        hand_discard(hand);
                unit_free(unit);
        }
        tr_lock_deinit(&crew->lock);
        free(crew);
}
