/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve COMPONENT OPERATION=COMMAND...: makes any program a replica, one process for each call.
 *
 * An interrupt gives the name up and waits for the calls that are held; a second one ends their processes.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "client/command/command.h"
#include "client/command/interrupt.h"
#include "client/command/job.h"
#include "client/command/link.h"
#include "client/command/report.h"
#include "client/command/show.h"
#include "client/json.h"
#include "client/troupe.h"

struct serve_options {
        const char *instance;
        uint64_t concurrency;
};

static const struct tr_option options[] = {
        { "--instance", TR_OPTION_TEXT, offsetof(struct serve_options, instance) },
        { "--concurrency", TR_OPTION_COUNT, offsetof(struct serve_options, concurrency) },
        { 0 },
};

/* One call. */
struct served {
        struct tr_job job;
        struct troupe_asked *asked;
        struct served *next;
};

struct service {
        struct tr_invocation *invocation;
        const char *component;
        char **operations; /* names, as many as there are; NULL behind the last */
        char **commands;
        struct served *calls;
        size_t count;
};

/* The words OPERATION=COMMAND. */

/* Cuts them in two, where they are. 0, or the exit code, and a message was printed. */
static int read_operations(struct service *service, char **words, int count) {
        service->operations = calloc((size_t)count + 1, sizeof(char *));
        service->commands = calloc((size_t)count + 1, sizeof(char *));
        if (!service->operations || !service->commands)
                return tr_report_errno(service->invocation, -ENOMEM);
        for (int i = 0; i < count; i++) {
                char *equals = strchr(words[i], '=');

                if (!equals || equals == words[i] || !equals[1])
                        return tr_report_usage(service->invocation, "`%s` is not OPERATION=COMMAND", words[i]);
                *equals = '\0';
                for (int before = 0; before < i; before++)
                        if (!strcmp(service->operations[before], words[i]))
                                return tr_report_usage(service->invocation, "%s has a command already", words[i]);
                service->operations[i] = words[i];
                service->commands[i] = equals + 1;
        }
        return 0;
}

/* Calls */

/* NAME=value of a member of the context that is a text or a number; NULL where it has none, or memory is short. */
static char *variable(const char *name, const struct troupe_value *context, const char *key) {
        struct troupe_value member;
        char *json = NULL, *text = NULL;
        size_t len;

        if (troupe_value_get(context, key, &member) || troupe_value_json(&member, &json, &len))
                return NULL;
        if (len > 1 && json[0] == '"') { /* names, and what W3C calls a traceparent: nothing in them is escaped */
                json[len - 1] = '\0';
                memmove(json, json + 1, len - 1);
        }
        if (asprintf(&text, "%s=%s", name, json) < 0)
                text = NULL;
        free(json);
        return text;
}

static void on_cancelled(struct troupe *troupe, struct troupe_asked *asked, void *userdata) {
        struct service *service = userdata;

        for (struct served *call = service->calls; call; call = call->next)
                if (call->asked == asked)
                        tr_job_kill(&call->job, SIGTERM);
}

/* 0 or a negative errno. */
static int begin(struct service *service, struct served *call, const char *command, const char *operation,
                 const struct troupe_value *input, const struct troupe_value *context) {
        char *env[7] = { NULL }, *text = NULL;
        size_t len = 0, at = 0;
        int r = troupe_value_json(input, &text, &len);

        if (r)
                return r;
        static const char *const variables[][2] = {
                { "TROUPE_COMPONENT", "component" }, { "TROUPE_INSTANCE", "instance" }, { "TROUPE_ATTEMPT", "attempt" },
                { "TRACEPARENT", "trace" },
        };
        for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
                if ((env[at] = variable(variables[i][0], context, variables[i][1])))
                        at++;
        if (asprintf(&env[at], "TROUPE_OPERATION=%s", operation) < 0)
                env[at] = NULL;
        text[len++] = '\n'; /* in the place of its NUL */
        r = tr_job_start(&call->job, command, env, text, len);
        for (size_t i = 0; i <= at; i++)
                free(env[i]);
        return r;
}

static void on_operation(struct troupe *troupe, const char *operation, const struct troupe_value *input,
                         const struct troupe_value *context, struct troupe_asked *asked, void *userdata) {
        struct service *service = userdata;
        struct served *call = calloc(1, sizeof(*call));
        const char *command = NULL;
        int r = call ? 0 : -ENOMEM;

        for (size_t i = 0; service->operations[i]; i++)
                if (!strcmp(service->operations[i], operation))
                        command = service->commands[i];
        if (!r)
                r = command ? begin(service, call, command, operation, input, context) : -ENOENT;
        if (r) {
                (void)troupe_refuse(asked, r == -ENOENT ? "this replica does not serve that" : strerror(-r), "");
                free(call);
                return;
        }
        call->asked = asked;
        call->next = service->calls;
        service->calls = call;
        service->count++;
}

/* What a process that failed is answered as: its last words, or how it ended. */
static void refuse(const struct served *call) {
        char text[TR_JOB_LINE_MAX + 1];
        int status = call->job.status;

        if (call->job.line_len)
                snprintf(text, sizeof(text), "%.*s", (int)call->job.line_len, call->job.line);
        else if (WIFSIGNALED(status))
                snprintf(text, sizeof(text), "the command was killed by signal %d", WTERMSIG(status));
        else
                snprintf(text, sizeof(text), "the command exited with status %d", WEXITSTATUS(status));
        (void)troupe_refuse(call->asked, text, "");
}

static void answer(const struct served *call) {
        const struct tr_writer *output = &call->job.output;
        char problem[TR_JSON_PROBLEM_MAX], text[TR_JSON_PROBLEM_MAX + 64];
        size_t len = output->len;
        int r;

        if (!WIFEXITED(call->job.status) || WEXITSTATUS(call->job.status)) {
                refuse(call);
                return;
        }
        while (len && strchr(" \t\r\n", output->data[len - 1]))
                len--;
        r = len ? troupe_reply(call->asked, "J", (const char *)output->data, len) : troupe_reply(call->asked, "");
        if (!r || r == -ENOTCONN)
                return;
        if (r == -EINVAL && tr_json_problem((const char *)output->data, len, problem))
                snprintf(text, sizeof(text), "the command's output is no JSON: %s", problem);
        else
                snprintf(text, sizeof(text), "the command's output cannot be sent: %s", strerror(-r));
        (void)troupe_refuse(call->asked, text, "");
}

static void drop(struct service *service, struct served **at) {
        struct served *call = *at;

        *at = call->next;
        tr_job_deinit(&call->job);
        free(call);
        service->count--;
}

/* The loop */

/* Waits once, for the connection and all processes. */
static enum tr_step step(struct service *service) {
        struct pollfd *fds = calloc(service->count * TR_JOB_FDS + 1, sizeof(*fds));
        size_t polled = service->count, at = 0;
        struct served *first = service->calls;
        enum tr_step step;

        if (!fds) { /* only what the connection says is seen then, soon again */
                return tr_link_step(service->invocation, NULL, 100);
        }
        for (struct served *call = first; call; call = call->next)
                tr_job_poll(&call->job, fds + TR_JOB_FDS * at++);
        step = tr_link_step_with(service->invocation, fds, polled * TR_JOB_FDS, -1);
        /* What came meanwhile stands before the first that was polled. */
        at = 0;
        for (struct served **place = &service->calls; *place;) {
                if (at == 0 && *place != first) {
                        place = &(*place)->next;
                        continue;
                }
                struct served *call = *place;
                int r = tr_job_process(&call->job, fds + TR_JOB_FDS * at++);

                if (r)
                        tr_job_kill(&call->job, SIGKILL);
                if (r || call->job.is_over) {
                        if (r)
                                (void)troupe_refuse(call->asked, "out of memory for the command's output", "");
                        else
                                answer(call);
                        drop(service, place);
                } else {
                        place = &call->next;
                }
                if (at == polled)
                        break;
        }
        free(fds);
        return step;
}

static void kill_all(struct service *service, int signal) {
        for (struct served *call = service->calls; call; call = call->next)
                tr_job_kill(&call->job, signal);
}

/* Until it is interrupted, and all is answered, or the daemon goes. */
static int stay(struct service *service) {
        struct tr_reply withdrawn = { 0 };
        bool is_withdrawing = false;
        int status = 0;

        tr_interrupt_be_patient(true);
        while (!withdrawn.is_done) {
                enum tr_step happened = step(service);

                if (happened == TR_STEP_OVER) {
                        status = tr_report_errno(service->invocation, -ENOTCONN);
                        status = TR_EXIT_NO_DAEMON;
                        break;
                }
                if (happened != TR_STEP_INTERRUPTED)
                        continue;
                if (is_withdrawing)
                        kill_all(service, SIGTERM);
                else if (troupe_withdraw_async(service->invocation->troupe, service->component, tr_link_on_reply, &withdrawn,
                                               &withdrawn.pending))
                        break;
                is_withdrawing = true;
        }
        tr_interrupt_be_patient(false);
        kill_all(service, SIGTERM);
        if (!status && withdrawn.problem.is_set)
                status = tr_problem_report(&withdrawn.problem, service->invocation, 0);
        tr_link_close(service->invocation);
        tr_reply_deinit(&withdrawn);
        return status ? status : tr_interrupt_exit();
}

static int print_instance(struct tr_invocation *invocation, const struct troupe_value *answer) {
        struct troupe_value instance;
        int r = troupe_value_get(answer, "instance", &instance);
        int status = r ? tr_report_errno(invocation, -EBADMSG) : tr_show_answer(invocation, &instance, TR_SHOW_RAW_LINES);

        return status ? status : tr_show_end(invocation);
}

static int serve(struct service *service, const struct serve_options *chosen) {
        const struct troupe_serve_options how = {
                .size = sizeof(how),
                .instance = chosen->instance,
                .operations = (const char *const *)service->operations,
                .concurrency = (uint32_t)chosen->concurrency,
                .on_cancelled = on_cancelled,
        };
        struct tr_reply reply = { 0 };
        int status, r;

        r = troupe_serve_async(service->invocation->troupe, service->component, &how, on_operation, service, tr_link_on_reply,
                               &reply, &reply.pending);
        status = tr_link_wait(service->invocation, r, &reply);
        if (!status)
                status = print_instance(service->invocation, &reply.value);
        tr_reply_deinit(&reply);
        return status ? status : stay(service);
}

static int run(struct tr_invocation *invocation, const void *chosen) {
        const struct serve_options *how = chosen;
        struct service service = { .invocation = invocation, .component = invocation->words.operands[0] };
        int status = 0;

        if (!invocation->words.raw_count)
                status = tr_report_usage(invocation, "OPERATION=COMMAND is missing");
        else if (how->concurrency > UINT32_MAX)
                status = tr_report_usage(invocation, "--concurrency is too large");
        if (!status)
                status = read_operations(&service, invocation->words.raw, invocation->words.raw_count);
        if (!status)
                status = tr_link_open(invocation);
        signal(SIGPIPE, SIG_IGN); /* a command need not read its input */
        if (!status)
                status = serve(&service, how);
        while (service.calls)
                drop(&service, &service.calls);
        free(service.operations);
        free(service.commands);
        return status;
}

const struct tr_command tr_cmd_serve = {
        .name = "serve",
        .usage = "[--instance I] [--concurrency N] COMPONENT OPERATION=COMMAND...",
        .summary = "serve operations of a component, each call by a process of its own",
        .details = "  COMMAND          what a shell runs: the input on standard input, the output on standard output, both JSON;\n"
                   "                   if it exits with other than 0, the last line of its standard error is the fault\n"
                   "  --instance I     the name that this replica asks for; it is printed when it has it\n"
                   "  --concurrency N  calls at once (what the manifest says)\n",
        .syntax = { options, sizeof(struct serve_options), { "COMPONENT" }, 1, .takes_tail = true },
        .run = run,
};
