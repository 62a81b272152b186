/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving: a piece is read, its frames are handled in place, and what is left of an unfinished one is kept.
 *
 * One piece per connection and round of the loop, whoever has how much to say. A connection that does not read its
 * answers is paused, in the middle of a piece if need be: its requests could otherwise have the daemon write without
 * end.
 *
 * Whoever floods a full mailbox has each message answered, and would keep the loop's CPU busy with that, and another with
 * writing, while those that others ask wait for one of them. So a connection of whose last piece something was refused
 * rests: it is not read from for a short time, twice as long each time while that goes on, and then a little is read.
 * Its socket fills meanwhile, which is how it hears of that. What is taken whole ends the rests at once, and lets the
 * pieces grow again.
 *
 * A peer that asks one thing at a time is asleep in a read of its socket when its frame is handled, and taking the
 * frame out of the socket wakes it, for nothing: in AF_UNIX a reader waits where a writer waits for room
 * (unix_write_space()). That wake costs the peer a switch to and fro, and the loop as much, or an interrupt of another
 * CPU (7 us on a virtual machine); and it came before the actor had the message. So such a frame is only peeked at, and
 * taken out when everything else is done. The wake is then of use: it makes the peer ready to run on the CPU that the
 * loop is about to leave, while the actor is writing the answer, which has nobody to wake any more. Measured on two
 * CPUs, p50 of an ask: 15 us without, 8.5 us with it.
 *
 * An answer that comes a moment too late for that finds the CPU idle, and waking an idle CPU costs more than all the rest together (20 us
 * on a virtual machine). So the loop stays awake for it, a few microseconds, before it takes the frame out; but only where this
 * was worth while lately, and where nothing else is to be done. Measured as above: an ask 8.0 instead of 9.6 us, its p99 68 instead of 108,
 * and a call of a Lua replica 11.5 instead of 33.
 */
#include "config.h"

#include <errno.h>

#include "daemon/base/clock.h"
#include "daemon/base/lock.h"
#include "daemon/base/log.h"
#include "daemon/core/system.h"
#include "daemon/io/connection.h"
#include "daemon/io/dispatch.h"
#include "daemon/io/server_internal.h"

/* What is read at once from a connection of which something was refused just now: others wait for less of that. */
#define FLOODING_BYTES ((size_t)4 << 10)
/* How long it rests the first time, and at most: as long as others hardly notice what one piece costs in between. */
#define REST_MIN_NS TR_NS_PER_MS
#define REST_MAX_NS (8 * TR_NS_PER_MS)
/* What is peeked at is copied twice; a larger frame than this costs more to copy than the wake that it would save. */
#define LONE_BYTES ((size_t)4 << 10)
/* How long the answer to a lone request is waited for, and after how many of those where that was in vain it is tried again, at most. */
#define ANSWER_WAIT_NS (10 * TR_NS_PER_US)
#define WAITS_SKIPPED_MAX 64

/* From here on what comes is thrown away. What came before is served, and the connection ends then. */
static void receive_bad(struct tr_connection *connection, const struct tr_refusal *refusal) {
        struct tr_log_context context = {
                .has_peer = true,
                .peer_uid = connection->peer.uid,
                .peer_pid = connection->peer.pid,
        };
        tr_log_with(TR_LOG_DEBUG, &context, "what a connection sent is no frame: it ends");
        tr_dispatch_bad(connection, refusal);
        connection->bad = true;
        tr_connection_set_ended(connection);
}

/* Handles frames until the bytes are too few for one more, or the connection is to be paused. Answers how many bytes
 * at the beginning are done with; *ret_frames says how many frames were handled, *ret_all whether all that could be
 * were. */
static size_t receive_frames(struct tr_connection *connection, const uint8_t *data, size_t bytes, size_t *ret_frames,
                             bool *ret_all) {
        struct tr_scanner *scanner = &connection->input.scanner;
        struct tr_frame frame;
        struct tr_refusal refusal;
        size_t at = 0;

        *ret_frames = 0;
        *ret_all = true;
        for (;;) {
                switch (tr_scan(scanner, data + at, bytes - at, &frame, &refusal)) {
                case TR_SCAN_FRAME:
                        tr_dispatch(connection, &frame);
                        at += frame.bytes;
                        (*ret_frames)++;
                        break;
                case TR_SCAN_SKIPPED:
                        at += frame.bytes;
                        break;
                case TR_SCAN_REFUSED:
                        tr_dispatch_refusal(connection, data + at, &frame, &refusal);
                        break;
                case TR_SCAN_MORE:
                        return at + tr_scanner_consumed(scanner, bytes - at);
                case TR_SCAN_BAD:
                        receive_bad(connection, &refusal);
                        return bytes;
                }
                if (connection->bad)
                        return bytes;
                if (connection->answered && tr_connection_is_congested(connection)) {
                        *ret_all = false;
                        return at;
                }
        }
}

/* Whether the peer waits for no answer. */
static bool waits_for_nothing(struct tr_connection *connection) {
        /* relaxed, and without the lock, under which an answer may be on its way into the socket: only this thread adds any */
        return atomic_load_explicit(&connection->pending.count, memory_order_relaxed) == 0;
}

/* Goes by what became of a piece. `full`: there may have been more to read. */
static void connection_pace(struct tr_connection *connection, bool full) {
        struct tr_system *system = connection->server->system;
        if (!connection->flooding) {
                connection->rest_ns = 0;
                if (full && connection->piece_bytes < TR_PIECE_BYTES)
                        connection->piece_bytes *= 2;
                return;
        }
        uint64_t longer_ns = connection->rest_ns ? 2 * connection->rest_ns : REST_MIN_NS;
        connection->rest_ns = longer_ns < REST_MAX_NS ? longer_ns : REST_MAX_NS;
        connection->piece_bytes = FLOODING_BYTES;
        /* Without memory for the timer it is read on: all is answered, rests or not. */
        connection->resting = tr_system_set_timer(system, &connection->rest_timer,
                                                  tr_clock_deadline_ns(connection->rest_ns)) >= 0;
}

void tr_connection_on_rested(struct tr_timer *timer) {
        struct tr_connection *connection = tr_container_of(timer, struct tr_connection, rest_timer);
        connection->resting = false;
        tr_connection_attend(connection);
}

static void receive_piece(struct tr_connection *connection, const uint8_t *data, size_t bytes, bool full) {
        bool all;
        size_t frames;
        /* Looked at before: the answer to what comes now may be out when it was gone through. */
        bool waited = bytes > LONE_BYTES || !waits_for_nothing(connection);
        connection->flooding = false;
        connection->asked = false;
        size_t done = receive_frames(connection, data, bytes, &frames, &all);
        tr_batch_flush(&connection->server->batch);
        if (tr_input_keep(&connection->input, data + done, bytes - done) < 0)
                tr_connection_doom(connection, "out of memory for what it sends");
        connection->retained = !all && done < bytes;
        connection->lone = frames == 1 && done == bytes && !waited && connection->asked;
        connection_pace(connection, full);
}

static void receive(struct tr_connection *connection) {
        struct tr_piece *piece = connection->server->piece;
        uint8_t *data;
        size_t bytes;
        bool peek = connection->lone && !tr_loop_has_more(connection->server->loop);
        size_t most = connection->piece_bytes;
        ssize_t received = tr_input_read(&connection->input, connection->fd, peek, most, piece, &data, &bytes);
        if (received == -EAGAIN)
                return;
        if (received == -ENOMEM)
                tr_connection_doom(connection, "out of memory for what it sends");
        else if (received <= 0)
                tr_connection_on_eof(connection);
        else if (!connection->bad)
                receive_piece(connection, data, bytes, (size_t)received == most);
}

/* Where what was peeked at waits for an answer, which may be near. */
static void stay_awake(struct tr_connection *connection) {
        if (connection->input.peeked == 0 || waits_for_nothing(connection))
                return;
        if (connection->waits_skipped < connection->waits_to_skip) {
                connection->waits_skipped++;
                return;
        }
        uint64_t until_ns = tr_clock_ns() + ANSWER_WAIT_NS;
        while (!waits_for_nothing(connection) && tr_clock_ns() < until_ns)
                tr_cpu_relax();
        uint32_t more = 2 * connection->waits_to_skip + 1;
        connection->waits_to_skip = waits_for_nothing(connection) ? 0 : more < WAITS_SKIPPED_MAX ? more : WAITS_SKIPPED_MAX;
        connection->waits_skipped = 0;
}

/* What was peeked at is out of the socket before it is read again: it would be handled twice. */
static void take_peeked(struct tr_connection *connection) {
        if (tr_input_take_peeked(&connection->input, connection->fd, connection->server->piece) < 0)
                tr_connection_doom(connection, "what it sent cannot be taken out of its socket");
}

/* Where the loop has only passed messages on, whoever answers them calls it if need be. Looking now would mostly mean
 * to wait for the lock while an answer is being sent under it. */
static bool wants_attention(const struct tr_connection *connection) {
        return connection->answered || connection->bad || connection->eof || connection->retained || connection->resting;
}

void tr_connection_on_readable(int fd, short what, void *userdata) {
        struct tr_connection *connection = userdata;
        if (connection->paused)
                return;
        struct tr_gather *gather = &connection->server->gather;
        tr_gather_begin(gather);
        if (connection->retained)
                receive_piece(connection, connection->input.data, connection->input.bytes, false);
        else
                receive(connection);
        tr_gather_end(gather);
        bool closed = false;
        if (wants_attention(connection)) {
                tr_connection_push(connection);
                closed = !tr_connection_attend(connection);
        }
        if (closed)
                return;
        stay_awake(connection);
        take_peeked(connection);
}
