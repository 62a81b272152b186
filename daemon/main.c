/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trouped: the command line, and how a process begins and ends. The only file that exits; the codes are sysexits.h's,
 * and those of a program that was run.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/log.h"
#include "daemon/base/thread.h"
#include "daemon/check.h"
#include "daemon/daemon.h"
#include "daemon/io/server.h"
#include "daemon/io/systemd.h"
#include "daemon/options.h"
#include "daemon/process.h"
#include "daemon/program.h"
#include "daemon/settings/settings.h"

/* Both live as long as the process: an actor that is stuck at the end may still read what they say. */
static struct tr_options options;
static struct tr_settings *settings;

static int exit_of_errno(int r) {
        fprintf(stderr, "trouped: %s\n", strerrordesc_np(-r));
        return r == -ENOMEM || r == -EMFILE || r == -ENFILE || r == -EAGAIN ? EX_OSERR : EX_SOFTWARE;
}

/* Where there is no listening socket, or no store, the log has said why. */
static int exit_of_daemon(int r) {
        switch (r) {
        case TR_LISTEN_IN_USE:
        case TR_DAEMON_STORE_IN_USE:
                return EX_TEMPFAIL;
        case TR_LISTEN_NO_GROUP:
        case TR_LISTEN_BAD_FD:
        case TR_DAEMON_NO_TRACE_FILE:
        case TR_DAEMON_STORE_NEWER:
                return EX_CONFIG;
        case TR_LISTEN_BAD_PATH:
        case TR_DAEMON_NO_STORE:
                return EX_CANTCREAT;
        default:
                return exit_of_errno(r);
        }
}

static void print_problems(const struct tr_problems *problems) {
        for (size_t i = 0; i < problems->count; i++) {
                TR_AUTO_FREE char *text = tr_problem_text(&problems->list[i]);

                fprintf(stderr, "trouped: %s\n", text ? text : "out of memory");
        }
}

static enum tr_settings_scope scope(void) {
        if (options.command == TR_COMMAND_RUN)
                return TR_SETTINGS_PROGRAM;
        return options.user ? TR_SETTINGS_USER : TR_SETTINGS_SYSTEM;
}

/* Reads the configuration. 0, or the code to exit with. */
static int load(struct tr_problems *notes) {
        struct tr_problems problems = { 0 };
        int r;

        if (options.command == TR_COMMAND_RUN && !options.config)
                r = tr_settings_new(TR_SETTINGS_PROGRAM, &problems, &settings);
        else
                r = tr_settings_load(options.config, scope(), &problems, notes, &settings);
        print_problems(&problems);
        tr_problems_deinit(&problems);
        if (r < 0)
                return exit_of_errno(r);
        return r == 0 ? 0 : EX_CONFIG;
}

static int check(void) {
        struct tr_problems problems = { 0 }, notes = { 0 };
        int r;

        r = tr_check(options.config, scope(), &problems, &notes, &settings);
        print_problems(&problems);
        print_problems(&notes);
        tr_problems_deinit(&problems);
        tr_problems_deinit(&notes);
        if (r < 0)
                return exit_of_errno(r);
        if (r > 0)
                return EX_CONFIG;
        printf("%s\n", settings->file ? settings->file : "no configuration: the defaults");
        return EX_OK;
}

static int serve_under(const struct tr_systemd *systemd) {
        const struct tr_daemon_options daemon_options = {
                .settings = settings,
                .config = options.config,
                .scope = scope(),
                .systemd = systemd,
                .socket_path = options.socket,
                .path = options.path,
        };
        struct tr_daemon *daemon;
        int r;

        r = tr_daemon_new(&daemon_options, &daemon);
        if (r != 0)
                return exit_of_daemon(r);
        r = tr_daemon_run(daemon);
        tr_daemon_free(daemon);
        return r < 0 ? exit_of_errno(r) : EX_OK;
}

static int serve(void) {
        /* as long as the process, too: whoever fails at the end may still have to be told */
        static struct tr_systemd systemd;
        struct tr_problems notes = { 0 };
        int code;

        tr_systemd_init(&systemd);
        code = load(&notes);
        if (code == 0) {
                tr_log_set_level((enum tr_log_level)settings->log_level);
                tr_log_set_format((enum tr_log_format)settings->log_format);
                tr_problems_log(&notes);
                tr_process_prepare_server(settings->limits.connections, settings->limits.actors);
                code = serve_under(&systemd);
        }
        tr_problems_deinit(&notes);
        return code;
}

static int run(void) {
        struct tr_program_options program_options = { .path = options.path,
                                                      .file = options.file,
                                                      .args = options.args };
        struct tr_problems notes = { 0 };
        int code, r;

        code = load(&notes);
        tr_problems_deinit(&notes);
        if (code != 0)
                return code;
        /* a person reads what a program says */
        tr_log_set_level(settings->has_log_level ? (enum tr_log_level)settings->log_level : TR_LOG_WARNING);
        tr_log_set_format(settings->has_log_format ? (enum tr_log_format)settings->log_format : TR_LOG_TEXT);
        program_options.settings = settings;
        r = tr_program_run(&program_options, &code);
        if (r < 0)
                return exit_of_errno(r);
        return r == TR_PROGRAM_NO_FILE ? EX_NOINPUT : code;
}

/* Everything that logs is in here: the log is stopped behind it. */
static int dispatch(void) {
        int code, r;

        switch (options.command) {
        case TR_COMMAND_HELP:
                fputs(tr_options_help, stdout);
                return EX_OK;
        case TR_COMMAND_VERSION:
                puts("trouped " PACKAGE_VERSION);
                return EX_OK;
        case TR_COMMAND_CHECK:
                return check();
        case TR_COMMAND_SERVE:
        case TR_COMMAND_RUN:
                break;
        }
        tr_thread_enter(TR_THREAD_LOOP, "loop");
        tr_process_prepare();
        r = tr_log_start();
        if (r < 0)
                return exit_of_errno(r);
        code = options.command == TR_COMMAND_RUN ? run() : serve();
        tr_log_stop();
        return code;
}

int main(int argc, char **argv) {
        int r;

        /* until the configuration says otherwise */
        tr_log_set_level(TR_LOG_WARNING);
        /* what getopt's messages begin with, as ours do */
        argv[0] = (char *)"trouped";
        r = tr_options_parse(argc, argv, &options);
        if (r < 0)
                exit(exit_of_errno(r));
        exit(r == TR_OPTIONS_USAGE ? EX_USAGE : dispatch());
}
