/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a connection.
 *
 *      open  --end of input-->  ended  --nothing pending, all sent-->  closed
 *        \------------------- doom, or nobody is there any more -------/
 *
 * A peer that closes its side for writing is still answered, and so is one that sends what is no frame: what came
 * before it is served. One that has gone ends the connection as soon as everything that it has sent is read.
 *
 * While a connection has ended there is nothing to read, but its socket stays readable for ever; the events then
 * become edge-triggered ones, which say once when the rest of it is closed too.
 */
#include "config.h"

#include "daemon/io/connection.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/thread.h"
#include "daemon/core/invocation.h"
#include "daemon/core/session.h"
#include "daemon/core/system.h"
#include "daemon/io/callee.h"
#include "daemon/io/listening.h"
#include "daemon/io/reply.h"
#include "daemon/io/server_internal.h"
#include "daemon/io/serving.h"

/* What is read and thrown away at most when a connection is closed while something lies unread: the kernel tells a
 * peer whose bytes were not read of a reset, and may take answers away from it. */
#define DISCARD_READS 16

/*
 * How often a connection that is blocked is looked at within limits.stalled; each time it has to be found as it was. So the time in which
 * the daemon did not run, because the machine was suspended or all of it was kept from its CPUs, counts as one look, however long it
 * was: whoever was kept from reading too has the rest of the time.
 */
#define STALL_LOOKS 4

static const char no_events[] = "out of memory for its events";

static void on_work(struct tr_work *work);
static void on_writable(int fd, short what, void *userdata);
static void on_hangup(int fd, short what, void *userdata);
static void on_stalled(struct tr_timer *timer);

int tr_connection_new(struct tr_server *server, int take_fd, struct tr_peer *take_peer, bool over_limit,
                      struct tr_connection **ret_connection) {
        struct tr_connection *connection = calloc(1, sizeof(*connection));
        int r = connection ? tr_pending_init(&connection->pending) : tr_error_origin(-ENOMEM);
        if (r < 0) {
                free(connection);
                tr_peer_deinit(take_peer);
                close(take_fd);
                return tr_error_fold(r);
        }
        struct event_base *base = tr_loop_base(server->loop);

        connection->asker.ops = &tr_connection_asker_ops;
        connection->reply_asker.ops = &tr_reply_asker_ops;
        atomic_init(&connection->refs, 1);
        connection->server = server;
        connection->peer = *take_peer;
        tr_connection_authorize(connection);
        connection->over_limit = over_limit;
        connection->form = (struct tr_response_form){ .errors = TR_ERRORS_PAIR, .values = TR_FORM_PLAIN };
        atomic_init(&connection->call_form, (uint8_t)TR_FORM_PLAIN);
        tr_outgoing_init(&connection->outgoing);
        tr_list_init(&connection->servings);
        connection->timeout_ns = TR_NEVER;
        connection->armed_ns = TR_NEVER;
        connection->fd = take_fd;
        connection->output.max_bytes = server->limits.output_bytes;
        connection->deadline_timer.fire = tr_connection_on_deadline;
        connection->stall_timer.fire = on_stalled;
        connection->rest_timer.fire = tr_connection_on_rested;
        connection->piece_bytes = TR_PIECE_BYTES;
        tr_lock_init(&connection->lock);
        tr_list_init(&connection->link);
        tr_list_init(&connection->gather_link);
        tr_list_init(&connection->unsent.link);
        tr_work_init(&connection->work, on_work);
        tr_input_init(&connection->input, server->limits.frame_bytes);
        tr_scanner_set_nesting(&connection->input.scanner, server->limits.nesting);
        connection->frame_max = connection->input.scanner.frame_max;
        event_assign(&connection->read_event, base, take_fd, EV_READ | EV_PERSIST, tr_connection_on_readable,
                     connection);
        event_assign(&connection->write_event, base, take_fd, EV_WRITE | EV_PERSIST, on_writable, connection);
        *ret_connection = connection;
        return 0;
}

void tr_connection_authorize(struct tr_connection *connection) {
        const struct tr_server *server = connection->server;
        struct tr_grant grant = tr_access_grant(&server->access, &connection->peer, (uid_t)server->system->own_uid);
        connection->roles = connection->confined ? TR_ROLE_CALL | TR_ROLE_SERVE : grant.roles;
        connection->names = grant.names;
}

void tr_connection_start(struct tr_connection *connection) {
        if (event_add(&connection->read_event, NULL) < 0)
                tr_connection_doom(connection, no_events);
}

struct tr_connection *tr_connection_ref(struct tr_connection *connection) {
        /* relaxed: who copies a reference has one */
        atomic_fetch_add_explicit(&connection->refs, 1, memory_order_relaxed);
        return connection;
}

void tr_connection_unref(struct tr_connection *connection) {
        if (connection)
                tr_connection_unref_many(connection, 1);
}

void tr_connection_unref_many(struct tr_connection *connection, uint32_t count) {
        /* acq_rel: the last one sees all that the others did with it */
        if (atomic_fetch_sub_explicit(&connection->refs, count, memory_order_acq_rel) != count)
                return;
        tr_lock_deinit(&connection->lock);
        free(connection);
}

/* Its requests are nobody's any more. What is queued of them never runs; what it was starting belongs to its session,
 * or was detached and lives on. */
static void settle_all(struct tr_message *chain) {
        while (chain) {
                struct tr_message *next = chain->ask.next;
                bool begun;
                if (tr_message_settle(chain, &begun))
                        tr_invocation_given_up(chain);
                tr_message_unref(chain);
                chain = next;
        }
}

/* Takes from the connection all that other threads reach, and answers its pending requests, chained. */
static struct tr_message *connection_disconnect(struct tr_connection *connection, int *ret_fd) {
        unsigned int references = 0;
        tr_lock_acquire(&connection->lock);
        *ret_fd = connection->fd;
        if (!connection->output.blocked)
                tr_output_send(&connection->output, connection->fd);
        connection->fd = -1;
        struct tr_message *chain = tr_pending_take_all(&connection->pending);
        tr_pending_deinit(&connection->pending);
        tr_output_break(&connection->output);
        tr_output_deinit(&connection->output);
        references += tr_unsent_remove(connection->server->unsent, &connection->unsent);
        references += tr_loop_forget(connection->server->loop, &connection->work);
        tr_lock_release(&connection->lock);
        while (references--)
                tr_connection_unref(connection);
        return chain;
}

void tr_connection_close(struct tr_connection *connection) {
        struct tr_server *server = connection->server;
        int fd;
        struct tr_message *chain = connection_disconnect(connection, &fd);

        event_del(&connection->read_event);
        event_del(&connection->write_event);
        tr_system_clear_timer(server->system, &connection->deadline_timer);
        tr_system_clear_timer(server->system, &connection->stall_timer);
        tr_system_clear_timer(server->system, &connection->rest_timer);
        for (unsigned int reads = 0; reads < DISCARD_READS; reads++)
                if (recv(fd, server->piece->data, sizeof(server->piece->data), MSG_DONTWAIT) <= 0)
                        break;
        close(fd);
        tr_input_deinit(&connection->input);
        tr_peer_deinit(&connection->peer);

        settle_all(chain);
        tr_serving_end_all(connection);
        tr_listening_end(connection);
        tr_callee_deafen(connection);
        tr_feed_leave(server->feed, connection);
        if (connection->session)
                tr_session_end(connection->session, TR_STOP_SESSION, server->system->limits.grace_ns, NULL, NULL);
        tr_session_unref(connection->session);
        connection->session = NULL;
        tr_connection_unref_many(connection, connection->refs_ahead);
        connection->refs_ahead = 0;
        tr_server_leave(server, connection);
}

struct tr_session *tr_connection_session(struct tr_connection *connection) {
        if (!connection->session)
                connection->session = tr_session_new(connection->server->system);
        return connection->session;
}

void tr_connection_doom(struct tr_connection *connection, const char *why) {
        tr_lock_acquire(&connection->lock);
        if (!connection->doom)
                connection->doom = why;
        tr_connection_call_loop_locked(connection);
        tr_lock_release(&connection->lock);
}

void tr_connection_set_ended(struct tr_connection *connection) {
        tr_lock_acquire(&connection->lock);
        connection->ended = true;
        tr_lock_release(&connection->lock);
        tr_serving_end_all(connection);
        tr_callee_deafen(connection);
}

/* Whether the peer has closed both directions. */
static bool peer_is_gone(int fd) {
        struct pollfd poll_fd = { .fd = fd };
        return poll(&poll_fd, 1, 0) < 0 || (poll_fd.revents & (POLLHUP | POLLERR | POLLNVAL));
}

static void connection_break_output(struct tr_connection *connection) {
        tr_lock_acquire(&connection->lock);
        tr_output_break(&connection->output);
        tr_lock_release(&connection->lock);
}

void tr_connection_on_eof(struct tr_connection *connection) {
        struct event_base *base = tr_loop_base(connection->server->loop);
        int fd = connection->fd;

        tr_connection_set_ended(connection);
        connection->eof = true;
        event_del(&connection->read_event);
        event_del(&connection->write_event);
        event_assign(&connection->read_event, base, fd, EV_READ | EV_ET | EV_PERSIST, on_hangup, connection);
        event_assign(&connection->write_event, base, fd, EV_WRITE | EV_ET | EV_PERSIST, on_writable, connection);
        connection->writing = false;
        if (event_add(&connection->read_event, NULL) < 0)
                tr_connection_doom(connection, no_events);
        /* After the event is there: what happens from now on is told. */
        if (peer_is_gone(fd))
                connection_break_output(connection);
}

static void on_hangup(int fd, short what, void *userdata) {
        struct tr_connection *connection = userdata;
        if (!peer_is_gone(fd))
                return;
        connection_break_output(connection);
        tr_connection_attend(connection);
}

static bool connection_look_later(struct tr_connection *connection) {
        struct tr_server *server = connection->server;
        uint64_t deadline_ns = tr_clock_deadline_ns(server->limits.stalled_ns / STALL_LOOKS);
        return tr_system_set_timer(server->system, &connection->stall_timer, deadline_ns) >= 0;
}

/* Waits for room in the socket, or does not, and keeps the time it has been waiting without any. */
static void connection_watch_output(struct tr_connection *connection, bool blocked, uint64_t sent_total) {
        struct tr_server *server = connection->server;
        bool moved = sent_total != connection->sent_before;
        connection->sent_before = sent_total;
        if (!blocked) {
                if (connection->writing)
                        event_del(&connection->write_event);
                connection->writing = false;
                return;
        }
        if (moved || !connection->writing)
                connection->stalled_looks = 0;
        if (connection->writing)
                return;
        connection->writing = true;
        tr_system_clear_timer(server->system, &connection->stall_timer);
        if (event_add(&connection->write_event, NULL) < 0 || !connection_look_later(connection))
                tr_connection_doom(connection, no_events);
}

static void connection_send_rest(struct tr_connection *connection) {
        struct tr_list done = TR_LIST_INIT(done);
        tr_lock_acquire(&connection->lock);
        if (tr_output_send(&connection->output, connection->fd) == TR_OUTPUT_EMPTY)
                tr_callee_feed_locked(connection, &done);
        tr_lock_release(&connection->lock);
        tr_callee_drop(&done);
        tr_serving_relieve(connection);
}

/* What the peer has read since is known only when it is tried. */
static void on_stalled(struct tr_timer *timer) {
        struct tr_connection *connection = tr_container_of(timer, struct tr_connection, stall_timer);
        if (!connection->writing)
                return;
        connection_send_rest(connection);
        connection->stalled_looks++;
        if (!tr_connection_attend(connection) || !connection->writing)
                return;
        if (connection->stalled_looks >= STALL_LOOKS)
                tr_connection_doom(connection, "its answers were left unread for longer than limits.stalled");
        else if (!connection_look_later(connection))
                tr_connection_doom(connection, no_events);
}

static void on_writable(int fd, short what, void *userdata) {
        struct tr_connection *connection = userdata;
        connection_send_rest(connection);
        tr_connection_attend(connection);
}

static void connection_pause(struct tr_connection *connection) {
        connection->paused = true;
        event_del(&connection->read_event);
}

/* Reads on, from where it stopped. The event is made active by hand: whole frames may be there already, of which no
 * socket would tell. */
static void connection_resume(struct tr_connection *connection) {
        if (connection->paused && event_add(&connection->read_event, NULL) < 0)
                tr_connection_doom(connection, no_events);
        else if (connection->retained)
                event_active(&connection->read_event, EV_READ, 0);
        connection->paused = false;
}

/* Who does not read answers is not read from, nor is who rests. */
static void connection_watch_input(struct tr_connection *connection) {
        if (connection->eof)
                return;
        bool wait = connection->resting || tr_connection_is_congested(connection);
        if (wait && !connection->paused)
                connection_pause(connection);
        else if (!wait && (connection->paused || connection->retained))
                connection_resume(connection);
}

static void connection_log_doom(struct tr_connection *connection, const char *why) {
        struct tr_log_context context = {
                .has_peer = true,
                .peer_uid = connection->peer.uid,
                .peer_pid = connection->peer.pid,
        };
        tr_log_with(TR_LOG_WARNING, &context, "a connection is closed: %s", why);
}

bool tr_connection_attend(struct tr_connection *connection) {
        tr_thread_assert(TR_THREAD_LOOP);
        tr_lock_acquire(&connection->lock);
        struct tr_output *output = &connection->output;
        const char *doom = connection->doom;
        bool blocked = output->blocked;
        uint64_t sent_total = output->sent_total;
        bool over =
                connection->ended && (output->broken || (connection->pending.count == 0 && !tr_output_waiting(output) &&
                                                            connection->outgoing.waiting_count == 0));
        tr_lock_release(&connection->lock);

        if (doom)
                connection_log_doom(connection, doom);
        if (doom || over) {
                tr_connection_close(connection);
                return false;
        }
        connection_watch_output(connection, blocked, sent_total);
        connection_watch_input(connection);
        return true;
}

static void on_work(struct tr_work *work) {
        struct tr_connection *connection = tr_container_of(work, struct tr_connection, work);
        if (connection->fd >= 0)
                tr_connection_attend(connection);
        tr_connection_unref(connection);
}
