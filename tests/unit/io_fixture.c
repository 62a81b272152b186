/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/unit/io_fixture.h"

#include <check.h>
#include <dirent.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/core/component.h"
#include "daemon/core/session.h"
#include "daemon/io/feed.h"
#include "daemon/io/server_internal.h"
#include "daemon/io/traces.h"
#include "tests/unit/notation.h"

static size_t count_fds(void) {
        size_t count = 0;
        DIR *directory = opendir("/proc/self/fd");
        ck_assert_ptr_nonnull(directory);
        while (readdir(directory))
                count++;
        closedir(directory);
        return count;
}

static void on_wake(void *userdata) {
        tr_loop_wake(((struct io_fixture *)userdata)->loop);
}

static void on_refused(void *userdata, const struct tr_refused *refused) {
        atomic_fetch_add(&((struct io_fixture *)userdata)->refused, 1);
}

static void on_shutdown(void *userdata) {
        atomic_fetch_add(&((struct io_fixture *)userdata)->shutdowns, 1);
}

static void on_metrics(void *userdata, struct tr_writer *text) {
        tr_write_raw(text, "# EOF\n", strlen("# EOF\n"));
}

static void *loop_thread(void *userdata) {
        ck_assert_int_eq(tr_loop_run(((struct io_fixture *)userdata)->loop), 0);
        return NULL;
}

struct tr_server_limits io_fixture_limits(void) {
        return (struct tr_server_limits){
                .connections = 64,
                .connections_per_user = 64,
                .requests = 65536,
                .frame_bytes = 16 << 20,
                .nesting = TR_NESTING_MAX,
                .output_bytes = 64 << 20,
                .stalled_ns = 30 * TR_NS_PER_S,
                .queue = 65536,
        };
}

void io_fixture_init(struct io_fixture *fixture, const struct tr_server_limits *limits) {
        *fixture = (struct io_fixture){ .fds = count_fds() };
        fake_shared_init(&fixture->shared);
        sem_init(&fixture->done, 0, 0);
        const struct tr_system_limits system_limits = {
                .actors = 64,
                .actors_per_user = 64,
                .heap_bytes = 1 << 20,
                .heap_max_bytes = 1 << 30,
                .mailbox = 1000,
                .mailbox_bytes = 1 << 20,
                .async = 1024,
                .queue = 65536,
                .grace_ns = 10 * TR_NS_PER_S,
        };
        const struct tr_system_hooks hooks = { .wake = on_wake, .refused = on_refused, .userdata = fixture };
        ck_assert_int_eq(tr_actor_install_signal(), 0);
        ck_assert_int_eq(tr_loop_new(&fixture->loop), 0);
        ck_assert_int_eq(tr_feed_new(fixture->loop, &fixture->feed), 0);
        ck_assert_int_eq(tr_traces_new(&fixture->traces), 0);
        ck_assert_int_eq(tr_system_new(&system_limits, &fake_behaviour, &fixture->shared, &hooks, &fixture->system), 0);
        tr_loop_attach(fixture->loop, fixture->system);
        const struct tr_server_options options = {
                .loop = fixture->loop,
                .system = fixture->system,
                .feed = fixture->feed,
                .traces = fixture->traces,
                .limits = *limits,
                .shutdown = on_shutdown,
                .write_metrics = on_metrics,
                .userdata = fixture,
        };
        ck_assert_int_eq(tr_server_new(&options, &fixture->server), 0);
        ck_assert_int_eq(pthread_create(&fixture->thread, NULL, loop_thread, fixture), 0);
}

static void on_daemon_empty(void *userdata) {
        sem_post(&((struct io_fixture *)userdata)->done);
}

static void end(struct io_fixture *fixture, void *userdata) {
        tr_server_free(fixture->server);
        tr_system_close(fixture->system);
        tr_session_end(fixture->system->daemon_session, TR_STOP_SHUTDOWN, TR_NEVER, on_daemon_empty, fixture);
}

static void stop(struct io_fixture *fixture, void *userdata) {
        tr_loop_stop(fixture->loop);
}

void io_fixture_deinit(struct io_fixture *fixture) {
        io_fixture_run(fixture, end, NULL);
        sem_wait(&fixture->done);
        io_fixture_run(fixture, stop, NULL);
        pthread_join(fixture->thread, NULL);
        ck_assert_uint_eq(tr_system_free(fixture->system), 0);
        tr_feed_free(fixture->feed);
        tr_traces_free(fixture->traces);
        tr_loop_free(fixture->loop);
        ck_assert_int_eq(atomic_load(&fixture->shared.opened), atomic_load(&fixture->shared.freed));
        sem_destroy(&fixture->done);
        ck_assert_uint_eq(count_fds(), fixture->fds);
}

struct call {
        struct tr_work work;
        struct io_fixture *fixture;
        void (*run)(struct io_fixture *fixture, void *userdata);
        void *userdata;
        sem_t returned;
};

static void on_call(struct tr_work *work) {
        struct call *call = tr_container_of(work, struct call, work);
        call->run(call->fixture, call->userdata);
        sem_post(&call->returned);
}

void io_fixture_run(struct io_fixture *fixture, void (*run)(struct io_fixture *fixture, void *userdata),
                    void *userdata) {
        struct call call = { .fixture = fixture, .run = run, .userdata = userdata };
        tr_work_init(&call.work, on_call);
        sem_init(&call.returned, 0, 0);
        tr_loop_post(fixture->loop, &call.work);
        sem_wait(&call.returned);
        sem_destroy(&call.returned);
}

static void accept_fd(struct io_fixture *fixture, void *userdata) {
        tr_server_accept(fixture->server, *(int *)userdata);
}

void io_fixture_accept(struct io_fixture *fixture, int take_fd) {
        io_fixture_run(fixture, accept_fd, &take_fd);
}

void io_fixture_declare(struct io_fixture *fixture, const char *text) {
        struct tr_manifest_problem problem = { 0 };
        struct tr_manifest *manifest;
        json_t *json = json_loads(text, 0, NULL);
        ck_assert_ptr_nonnull(json);
        ck_assert_msg(tr_manifest_read(json, "/", &problem, &manifest) == 0, "%s: %s", problem.path, problem.reason);
        json_decref(json);
        ck_assert_ptr_null(tr_component_declare(fixture->system, fixture->system->daemon_session, manifest, 0, 0, NULL));
        tr_manifest_unref(manifest);
}

void io_client_init(struct io_client *client, struct io_fixture *fixture) {
        int fds[2];
        *client = (struct io_client){ 0 };
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        client->fd = fds[0];
        io_fixture_accept(fixture, fds[1]);
}

void io_client_deinit(struct io_client *client) {
        if (client->fd >= 0)
                close(client->fd);
        free(client->data);
}

void io_client_send(struct io_client *client, const void *data, size_t bytes) {
        for (size_t at = 0; at < bytes;) {
                ssize_t sent = send(client->fd, (const char *)data + at, bytes - at, MSG_NOSIGNAL);
                ck_assert_int_gt(sent, 0);
                at += (size_t)sent;
        }
}

void io_client_say(struct io_client *client, const char *format, ...) {
        struct tr_writer writer = TR_WRITER_INIT;
        char *text;
        va_list arguments;
        va_start(arguments, format);
        ck_assert_int_ge(vasprintf(&text, format, arguments), 0);
        va_end(arguments);
        notation_write(&writer, text);
        io_client_send(client, writer.data, writer.len);
        tr_writer_deinit(&writer);
        free(text);
}

/* Receives more. False at the end. */
static bool client_receive(struct io_client *client) {
        enum {
                ROOM = 65536
        };
        client->data = realloc(client->data, client->bytes + ROOM);
        ck_assert_ptr_nonnull(client->data);
        ssize_t received = recv(client->fd, client->data + client->bytes, ROOM, 0);
        if (received <= 0)
                return false;
        client->bytes += (size_t)received;
        return true;
}

/* The bytes of the next frame, which is whole; 0 at the end. */
static size_t client_next(struct io_client *client) {
        struct tr_reader reader = tr_reader(client->data, client->bytes);
        while (tr_read_skip(&reader) != 0) {
                if (!client_receive(client))
                        return 0;
                reader = tr_reader(client->data, client->bytes);
        }
        return (size_t)(reader.at - client->data);
}

static void client_drop(struct io_client *client, size_t bytes) {
        client->bytes -= bytes;
        memmove(client->data, client->data + bytes, client->bytes);
}

const char *io_client_hear(struct io_client *client) {
        size_t bytes = client_next(client);
        if (bytes == 0)
                return "end";
        struct tr_reader frame = tr_reader(client->data, bytes);
        char *text = notation_read(&frame);
        snprintf(client->text, sizeof(client->text), "%s", text);
        free(text);
        client_drop(client, bytes);
        return client->text;
}

int64_t io_client_hear_id(struct io_client *client) {
        size_t bytes = client_next(client);
        struct tr_reader frame = tr_reader(client->data, bytes);
        struct tr_token token = { 0 };
        /* The array, the type, the id. */
        for (int i = 0; i < 3; i++)
                if (tr_read(&frame, &token) != 0)
                        return -1;
        client_drop(client, bytes);
        return token.integer;
}

void io_client_expect_both(struct io_client *client, const char *one, const char *other) {
        bool other_first = strcmp(io_client_hear(client), other) == 0;
        ck_assert_str_eq(client->text, other_first ? other : one);
        io_client_expect(client, other_first ? one : other);
}

const char *io_client_spawn(struct io_client *client, const char *actor) {
        static char handle[TR_HANDLE_TEXT_MAX + 1];
        io_client_say(client, "[0,4000000000,'spawn',['%s',[]]]", actor);
        ck_assert_msg(sscanf(io_client_hear(client), "[1,4000000000,nil,'%38[^']']", handle) == 1, "%s", client->text);
        return handle;
}

void io_begin(struct io_fixture *fixture, struct io_client *client, const struct tr_server_limits *limits) {
        struct tr_server_limits usual = io_fixture_limits();

        io_fixture_init(fixture, limits ? limits : &usual);
        io_client_init(client, fixture);
}

void io_end(struct io_fixture *fixture, struct io_client *client) {
        io_client_deinit(client);
        io_fixture_deinit(fixture);
}
