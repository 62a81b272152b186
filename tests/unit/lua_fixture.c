/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/lua_fixture.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/core/session.h"
#include "daemon/core/system.h"
#include "proto/limits.h"
#include "proto/value.h"

/* Answers are put into words on the threads of actors, where libcheck, which allocates, must not be in the way of a test
 * that makes allocations fail. */
static void must(bool holds) {
        if (!holds)
                abort();
}

/* values as text */

static void write_value(FILE *out, struct tr_reader *reader) {
        struct tr_token token;

        must(tr_read(reader, &token) == 0);
        switch (token.type) {
        case TR_NIL:
                fputs("null", out);
                break;
        case TR_BOOL:
                fputs(token.boolean ? "true" : "false", out);
                break;
        case TR_INT:
                fprintf(out, "%" PRId64, token.integer);
                break;
        case TR_FLOAT:
                fprintf(out, "%.17g", token.number);
                break;
        case TR_STR:
                fprintf(out, "\"%.*s\"", (int)token.len, token.data);
                break;
        case TR_BIN:
                fprintf(out, "bin(%u)", token.len);
                break;
        case TR_ARRAY:
                fputc('[', out);
                for (uint32_t i = 0; i < token.count; i++) {
                        if (i > 0)
                                fputc(',', out);
                        write_value(out, reader);
                }
                fputc(']', out);
                break;
        case TR_MAP:
                fputc('{', out);
                for (uint32_t i = 0; i < token.count; i++) {
                        if (i > 0)
                                fputc(',', out);
                        write_value(out, reader);
                        fputc(':', out);
                        write_value(out, reader);
                }
                fputc('}', out);
                break;
        default:
                fprintf(out, "ext(%d)", token.ext);
                break;
        }
}

static char *text_of_value(const void *value, size_t bytes) {
        struct tr_reader reader = tr_reader(value, bytes);
        char *text = NULL;
        size_t len;
        FILE *out = open_memstream(&text, &len);

        write_value(out, &reader);
        must(reader.at == reader.end);
        fclose(out);
        return text;
}

char *lua_failure_field(const struct tr_failure *failure, const char *key) {
        struct tr_reader reader = tr_reader(failure->extra.data, failure->extra.len);
        struct tr_token token;
        char *text;

        for (uint32_t i = 0; i < failure->extras; i++) {
                must(tr_read(&reader, &token) == 0);
                if (tr_token_equals(&token, key)) {
                        struct tr_reader value = reader;
                        must(tr_read_skip(&reader) == 0);
                        text = text_of_value(value.at, (size_t)(reader.at - value.at));
                        return text;
                }
                must(tr_read_skip(&reader) == 0);
        }
        return NULL;
}

static char *text_of_failure(const struct tr_failure *failure, enum tr_ran ran) {
        char *kind = lua_failure_field(failure, "kind"), *text = NULL;

        if (kind)
                kind[strlen(kind) - 1] = 0;
        must(asprintf(&text, "%s%s%s%s/%s: %s", tr_code_text(failure->code), kind ? "(" : "", kind ? kind + 1 : "",
                      kind ? ")" : "", tr_ran_text(ran), failure->message) >= 0);
        free(kind);
        return text;
}

/* Takes the folder out of the paths in a text. */
static char *without_folder(const struct lua_fixture *fixture, char *text) {
        char folder[sizeof(fixture->directory) + 1], *at;
        size_t len = (size_t)snprintf(folder, sizeof(folder), "%s/", fixture->directory);

        while ((at = strstr(text, folder)))
                memmove(at, at + len, strlen(at + len) + 1);
        return text;
}

/* the asker */

static void settle(struct tr_asker *asker, char *text, struct tr_failure *failure) {
        struct lua_asked *asked = (struct lua_asked *)asker;
        struct lua_fixture *fixture = asked->fixture;

        asked->text = without_folder(fixture, text);
        asked->failure = tr_failure_ref(failure);
        atomic_store(&asked->settled, true);
        sem_post(&fixture->woken);
}

static void on_resolve(struct tr_asker *asker, struct tr_message *message, const void *value, size_t bytes, bool more) {
        settle(asker, text_of_value(value, bytes), NULL);
}

static void on_reject(struct tr_asker *asker, struct tr_message *message, struct tr_failure *failure, enum tr_ran ran,
                      bool more) {
        settle(asker, text_of_failure(failure, ran), failure);
}

void lua_asked_unref(struct lua_asked *asked) {
        if (atomic_fetch_sub(&asked->refs, 1) != 1)
                return;
        tr_failure_unref(asked->failure);
        free(asked->text);
        free(asked);
}

static void on_ref(struct tr_asker *asker) {
        atomic_fetch_add(&((struct lua_asked *)asker)->refs, 1);
}

static void on_unref(struct tr_asker *asker, uint32_t count) {
        while (count--)
                lua_asked_unref((struct lua_asked *)asker);
}

static const struct tr_asker_ops asker_ops = {
        .resolve = on_resolve,
        .reject = on_reject,
        .ref = on_ref,
        .unref = on_unref,
};

static struct lua_asked *new_asked(struct lua_fixture *fixture) {
        struct lua_asked *asked = calloc(1, sizeof(*asked));

        ck_assert_ptr_nonnull(asked);
        asked->asker.ops = &asker_ops;
        asked->fixture = fixture;
        atomic_init(&asked->refs, 1);
        return asked;
}

static struct tr_message *new_message(struct lua_asked *asked, enum tr_message_kind kind, const char *handler,
                                      const char *argument) {
        struct tr_writer writer = TR_WRITER_INIT;
        struct tr_message *message;

        if (argument)
                tr_write_string(&writer, argument, strlen(argument));
        message = tr_message_new(kind, handler, strlen(handler), writer.data, writer.len, argument ? 1 : 0);
        tr_writer_deinit(&writer);
        ck_assert_ptr_nonnull(message);
        message->form = TR_FORM_PLAIN;
        message->asker = &asked->asker;
        on_ref(&asked->asker);
        return message;
}

void (*lua_before_send)(void);

struct lua_asked *lua_ask(struct lua_fixture *fixture, struct tr_target *target, const char *handler,
                          const char *argument) {
        struct lua_asked *asked = new_asked(fixture);
        struct tr_message *message = new_message(asked, TR_MESSAGE_HANDLER, handler, argument);

        if (lua_before_send)
                lua_before_send();
        (void)tr_target_send(target, message);
        return asked;
}

struct lua_asked *lua_watch(struct lua_fixture *fixture, struct tr_target *target) {
        struct lua_asked *asked = new_asked(fixture);

        tr_target_watch(target, new_message(asked, TR_MESSAGE_DONE, "", NULL));
        return asked;
}

static bool is_settled(void *userdata) {
        return atomic_load(&((struct lua_asked *)userdata)->settled);
}

const char *lua_wait(struct lua_asked *asked) {
        lua_run_until(asked->fixture, is_settled, asked);
        return asked->text;
}

/* The answer's text; the question is dropped. */
static char *wait_and_take(struct lua_asked *asked) {
        char *text = strdup(lua_wait(asked));

        lua_asked_unref(asked);
        return text;
}

char *lua_answer(struct lua_fixture *fixture, struct tr_target *target, const char *handler, const char *argument) {
        return wait_and_take(lua_ask(fixture, target, handler, argument));
}

char *lua_end(struct lua_fixture *fixture, struct tr_target *target) {
        return wait_and_take(lua_watch(fixture, target));
}

/* the system */

void lua_run_until(struct lua_fixture *fixture, bool (*condition)(void *userdata), void *userdata) {
        while (!condition(userdata)) {
                uint64_t now_ns = tr_clock_ns(), next_ns = tr_system_run_due(fixture->system, now_ns);
                struct timespec until;

                if (condition(userdata))
                        return;
                if (next_ns == TR_NEVER) {
                        while (sem_wait(&fixture->woken) < 0)
                                ck_assert_int_eq(errno, EINTR);
                        continue;
                }
                until.tv_sec = (time_t)(next_ns / TR_NS_PER_S);
                until.tv_nsec = (long)(next_ns % TR_NS_PER_S);
                (void)sem_clockwait(&fixture->woken, CLOCK_MONOTONIC, &until);
        }
}

static void on_wake(void *userdata) {
        sem_post(&((struct lua_fixture *)userdata)->woken);
}

static void on_event(void *userdata, const struct tr_news *news) {
        atomic_fetch_add(&((struct lua_fixture *)userdata)->events[news->event], 1);
}

static void on_refused(void *userdata, const struct tr_refused *refused) {
        atomic_fetch_add(&((struct lua_fixture *)userdata)->refused, 1);
}

void lua_fixture_init(struct lua_fixture *fixture, unsigned int allow) {
        const struct tr_system_limits limits = {
                .actors = 256,
                .actors_per_user = 256,
                .heap_bytes = 64 << 20,
                .heap_max_bytes = 1 << 30,
                .mailbox = 1024,
                .mailbox_bytes = 64 << 20,
                .async = 1024,
                .queue = 1024,
                .grace_ns = 10 * TR_NS_PER_S,
        };
        struct tr_system_hooks hooks = {
                .wake = on_wake, .event = on_event, .refused = on_refused, .userdata = fixture
        };

        *fixture = (struct lua_fixture){ 0 };
        ck_assert_int_eq(sem_init(&fixture->woken, 0, 0), 0);
        strcpy(fixture->directory, "/tmp/troupe-test-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(fixture->directory));
        fixture->path[0] = fixture->directory;
        fixture->script = (struct tr_script){
                .path = fixture->path, .allow = allow, .nesting = TR_NESTING_MAX, .grace_ns = limits.grace_ns
        };
        ck_assert_int_eq(tr_actor_install_signal(), 0);
        ck_assert_int_eq(tr_system_new(&limits, &tr_script_behaviour, &fixture->script, &hooks, &fixture->system), 0);
}

static void remove_directory(const char *directory) {
        struct dirent *entry;
        DIR *entries = opendir(directory);
        char path[512];

        ck_assert_ptr_nonnull(entries);
        while ((entry = readdir(entries)))
                if (entry->d_name[0] != '.') {
                        snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
                        if (unlink(path) < 0 && errno == EISDIR)
                                remove_directory(path);
                }
        closedir(entries);
        ck_assert_int_eq(rmdir(directory), 0);
}

static void on_empty(void *userdata) {
        struct lua_asked *asked = userdata;
        struct lua_fixture *fixture = asked->fixture; /* who waits drops the question as soon as it is settled */

        atomic_store(&asked->settled, true);
        sem_post(&fixture->woken);
}

static bool are_threads_over(void *userdata) {
        struct tr_system *system = ((struct lua_fixture *)userdata)->system;
        uint32_t threads;

        tr_lock_acquire(&system->lock);
        threads = system->threads;
        tr_lock_release(&system->lock);
        return threads == 0;
}

void lua_fixture_deinit(struct lua_fixture *fixture) {
        struct lua_asked *ended = new_asked(fixture);

        tr_session_end(fixture->system->daemon_session, TR_STOP_SHUTDOWN, TR_NEVER, on_empty, ended);
        lua_wait(ended);
        lua_asked_unref(ended);
        lua_run_until(fixture, are_threads_over, fixture);
        if (fixture->before_free)
                fixture->before_free(fixture);
        ck_assert_uint_eq(atomic_load(&fixture->system->heap_bytes), 0);
        ck_assert_uint_eq(tr_system_free(fixture->system), 0);
        sem_destroy(&fixture->woken);
        remove_directory(fixture->directory);
}

void lua_fixture_module(struct lua_fixture *fixture, const char *name, const char *text) {
        char path[512];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s.lua", fixture->directory, name);
        file = fopen(path, "w");
        ck_assert_ptr_nonnull(file);
        fprintf(file, "local troupe = require \"troupe\"; %s\n", text);
        fclose(file);
}

struct tr_target *lua_fixture_spawn(struct lua_fixture *fixture, const char *actor,
                                    const struct tr_actor_options *options) {
        struct tr_actor_options chosen = options ? *options : (struct tr_actor_options){ 0 };
        struct tr_message *init = tr_message_new(TR_MESSAGE_INIT, "init", 4, NULL, 0, 0);
        struct tr_target *target = NULL;
        struct tr_failure *failure;

        chosen.actor = actor;
        failure = tr_actor_spawn(fixture->system, fixture->system->daemon_session, &chosen, init, &target, NULL);
        ck_assert_msg(!failure, "spawn: %s", failure ? failure->message : "");
        return target;
}

void lua_expect(struct lua_fixture *fixture, const char *before, const char *body, const char *expected) {
        struct tr_target *target;
        char *module = NULL;

        ck_assert_int_ge(
                asprintf(&module, "%s\nlocal A = troupe.actor 'A'\nfunction A.async:run()\n%s\nend", before, body), 0);
        lua_fixture_module(fixture, "m", module);
        free(module);
        target = lua_fixture_spawn(fixture, "m:A", NULL);
        ck_assert_answer(fixture, target, "run", expected);
        target->ops->stop(target, TR_STOP_ASKED, TR_NEVER);
        tr_target_unref(target);
}
