/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a program:
 *
 *      main runs  ->  its actor has ended  ->  its session stops orderly  ->  what was detached is drained  ->  over
 *
 * The actor ends by itself when main has returned and nothing is pending in it. A send on the program's last line is
 * still served, because the session is stopped orderly and waited for without a bound; what was detached has the grace.
 * A signal goes straight to the drain, a second one hurries that.
 *
 * Entities and tasks of its components are kept in memory, and end with it.
 */
#include "config.h"

#include "daemon/program.h"

#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/base/clock.h"
#include "daemon/core/actor.h"
#include "daemon/drain.h"
#include "daemon/host.h"
#include "daemon/io/loop.h"
#include "daemon/io/signals.h"
#include "daemon/store/sqlite_store.h"
#include "proto/name.h"

#define EXIT_FAULT 1
/* As a shell has it for a program that a signal ended. */
#define EXIT_SIGNAL 128

struct program {
        const struct tr_program_options *options;
        char *file;   /* absolute */
        char *folder; /* its */
        char *module; /* its name as one */

        struct tr_asker asker; /* of the actor's end */
        struct tr_host host;
        struct tr_sqlite_store *store; /* in memory */
        struct tr_signals *signals;
        struct tr_drain *drain;
        struct tr_session *session;
        struct tr_work ended;       /* the actor has ended */
        struct tr_work empty;       /* its session too */
        struct tr_failure *failure; /* how the actor ended; set before `ended` is posted */
        bool draining;
        int code;
};

/* What the file is */

/* The name of a file as a module: without its folder and ".lua". NULL where it cannot be one, or for want of memory. */
static char *module_name(const char *file) {
        const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
        size_t len = strlen(base);

        if (len > 4 && strcmp(base + len - 4, ".lua") == 0)
                len -= 4;
        return tr_name_is_valid(base, len) ? strndup(base, len) : NULL;
}

/* 0 or TR_PROGRAM_NO_FILE. */
static int program_find(struct program *program) {
        const char *file = program->options->file;

        program->file = realpath(file, NULL);
        if (!program->file) {
                fprintf(stderr, "trouped: run: %s: %s\n", file, strerrordesc_np(errno));
                return TR_PROGRAM_NO_FILE;
        }
        /* by the name it was called by: a link may give a module's name to any file */
        program->module = module_name(file);
        if (!program->module) {
                fprintf(stderr, "trouped: run: %s: a program is a module too, and its name cannot be one\n", file);
                return TR_PROGRAM_NO_FILE;
        }
        program->folder = strdup(program->file);
        if (!program->folder)
                return tr_error_origin(-ENOMEM);
        dirname(program->folder);
        return 0;
}

/* Its end */

static void on_drained(void *userdata) {
        struct program *program = userdata;

        tr_loop_stop(program->host.loop);
}

static void program_drain(struct program *program) {
        if (program->draining)
                return;
        program->draining = true;
        tr_drain_start(program->drain, program->options->settings->grace_ms * TR_NS_PER_MS);
}

static void on_empty(struct tr_work *work) {
        program_drain(tr_container_of(work, struct program, empty));
}

/* Any thread. */
static void on_session_empty(void *userdata) {
        struct program *program = userdata;

        tr_loop_post(program->host.loop, &program->empty);
}

static bool lacks_main(const struct tr_failure *failure) {
        const char *kind;
        size_t len;

        return tr_failure_find_text(failure, "kind", &kind, &len) && len == strlen("no-main") &&
               memcmp(kind, "no-main", len) == 0;
}

static void print_failure(const struct tr_failure *failure) {
        const char *traceback;
        size_t len;

        fprintf(stderr, "trouped: run: %s\n", failure->message);
        if (tr_failure_find_text(failure, "traceback", &traceback, &len))
                fprintf(stderr, "%.*s\n", (int)len, traceback);
}

static void on_ended(struct tr_work *work) {
        struct program *program = tr_container_of(work, struct program, ended);

        if (program->draining)
                return;
        if (program->failure) {
                program->code = lacks_main(program->failure) ? EX_USAGE : EXIT_FAULT;
                print_failure(program->failure);
        }
        tr_session_end(program->session, TR_STOP_SESSION, TR_NEVER, on_session_empty, program);
}

/* Any thread. */
static void on_resolve(struct tr_asker *asker, struct tr_message *message, const void *value, size_t bytes, bool more) {
        struct program *program = tr_container_of(asker, struct program, asker);

        tr_loop_post(program->host.loop, &program->ended);
}

static void on_reject(struct tr_asker *asker, struct tr_message *message, struct tr_failure *failure, enum tr_ran ran,
                      bool more) {
        struct program *program = tr_container_of(asker, struct program, asker);

        program->failure = tr_failure_ref(failure);
        tr_loop_post(program->host.loop, &program->ended);
}

static void on_ref(struct tr_asker *asker) {}

static void on_unref(struct tr_asker *asker, uint32_t count) {}

static const struct tr_asker_ops program_asker_ops = {
        .resolve = on_resolve,
        .reject = on_reject,
        .ref = on_ref,
        .unref = on_unref,
};

static void on_signal(void *userdata, int signal) {
        struct program *program = userdata;

        if (program->code >= EXIT_SIGNAL) {
                tr_drain_hurry(program->drain);
                return;
        }
        program->code = EXIT_SIGNAL + signal;
        program_drain(program);
}

/* Its beginning */

static int program_create_host(struct program *program) {
        const struct tr_settings *settings = program->options->settings;
        const struct tr_host_options options = {
                .settings = settings,
                .path = program->options->path,
                .allow = settings->has_allow ? tr_host_allow(settings->allow)
                                             : TR_ALLOW_FILES | TR_ALLOW_COMMANDS | TR_ALLOW_NATIVE,
                .grace_ns = TR_NEVER,
                /* whoever asked gets the fault; the program's own is printed */
                .fault_level = TR_LOG_INFO,
        };
        int r = tr_host_init(&program->host, &options);

        if (r < 0)
                return tr_error_fold(r);
        program->host.script.program_file = program->file;
        program->host.script.program_dir = program->folder;
        program->host.script.program_module = program->module;
        program->host.script.program_args = program->options->args;
        return 0;
}

static int program_create_store(struct program *program) {
        char *why = NULL;
        int r = tr_sqlite_store_new(NULL, &program->store, &why);

        if (r > 0) /* nobody else has it, or wrote it: no memory is to be had for it, or no thread */
                tr_log(TR_LOG_ERROR, "the store in memory: %s", why ? why : "out of memory");
        free(why);
        if (r != 0)
                return r < 0 ? tr_error_fold(r) : tr_error_origin(-ENOMEM);
        program->host.system->store = tr_sqlite_store_interface(program->store);
        return 0;
}

static int program_create(struct program *program) {
        int r;

        r = program_create_host(program);
        if (r == 0)
                r = program_create_store(program);
        if (r == 0)
                r = tr_signals_new(program->host.loop, on_signal, program, &program->signals);
        if (r == 0)
                r = tr_drain_new(program->host.loop, program->host.system, on_drained, program, &program->drain);
        if (r < 0)
                return tr_error_fold(r);
        program->session = tr_session_new(program->host.system);
        if (!program->session)
                return tr_error_origin(-ENOMEM);
        snprintf(program->session->name, sizeof(program->session->name), "%s", "program");
        return 0;
}

/* Starts main. 0 or a negative errno. */
static int program_start(struct program *program) {
        struct tr_system *system = program->host.system;
        const struct tr_actor_options options = {
                .actor = program->module,
                .owner_uid = system->own_uid,
                .program = true,
        };
        struct tr_message *init = tr_message_new(TR_MESSAGE_INIT, "init", 4, NULL, 0, 0);
        struct tr_message *done = tr_message_new(TR_MESSAGE_DONE, "", 0, NULL, 0, 0);
        struct tr_target *target;

        if (!init || !done) {
                tr_message_unref(init);
                tr_message_unref(done);
                return tr_error_origin(-ENOMEM);
        }
        program->asker.ops = &program_asker_ops;
        done->asker = &program->asker;
        program->failure = tr_actor_spawn(system, program->session, &options, init, &target, NULL);
        if (program->failure) {
                tr_message_unref(done);
                tr_loop_post(program->host.loop, &program->ended);
                return 0;
        }
        tr_target_watch(target, done);
        tr_target_unref(target);
        return 0;
}

static void program_free(struct program *program) {
        tr_sqlite_store_close(program->store);
        tr_drain_free(program->drain);
        tr_session_unref(program->session);
        tr_signals_free(program->signals);
        tr_failure_unref(program->failure);
        tr_host_deinit(&program->host);
        /* a stuck actor may come back to the host, to the store, and to the program that it runs */
        if (program->host.system)
                return;
        tr_sqlite_store_free(program->store);
        free(program->file);
        free(program->folder);
        free(program->module);
        free(program);
}

int tr_program_run(const struct tr_program_options *options, int *ret_code) {
        struct program *program = calloc(1, sizeof(*program));
        int r;

        if (!program)
                return tr_error_origin(-ENOMEM);
        program->options = options;
        tr_work_init(&program->ended, on_ended);
        tr_work_init(&program->empty, on_empty);
        r = program_find(program);
        if (r == 0)
                r = program_create(program);
        if (r == 0)
                r = program_start(program);
        if (r == 0)
                r = tr_loop_run(program->host.loop);
        *ret_code = program->code;
        program_free(program);
        return r;
}
