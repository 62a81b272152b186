/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The creation order below any socket: loop, then what Lua is given, then the system, which calls both. Destruction is
 * the reverse, and stops before anything that a stuck actor could still touch.
 */
#include "daemon/host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/actor.h"
#include "daemon/core/component.h"
#include "daemon/io/crew.h"
#include "daemon/io/feed.h"
#include "daemon/io/loop.h"
#include "daemon/io/traces.h"
#include "daemon/watch/trace_file.h"
#include "daemon/watch/watch.h"

static void on_wake(void *userdata) {
        struct tr_host *host = userdata;

        tr_loop_wake(host->loop);
}

static void log_failure(enum tr_log_level level, const struct tr_log_context *context,
                        const struct tr_failure *failure) {
        const char *traceback;
        size_t len;

        if (tr_failure_find_text(failure, "traceback", &traceback, &len))
                tr_log_with(level, context, "%s: %s\n%.*s", tr_code_text(failure->code), failure->message, (int)len,
                            traceback);
        else
                tr_log_with(level, context, "%s: %s", tr_code_text(failure->code), failure->message);
}

/*
 * Faults that are logged as less than a warning are those of which somebody is told, if not at once: who spawns an actor may ask it later.
 * Of what nobody has heard a moment after the last one, or at the end, the log tells.
 */
#define UNHEARD_AFTER_NS TR_NS_PER_S

static void log_unheard(void *userdata, struct tr_target *target) {
        char handle[TR_HANDLE_SHORT + 1];
        const struct tr_log_context context = tr_target_log_context(target, handle);
        struct tr_failure *failure = tr_target_take_unheard(target);

        if (failure && failure->code != TR_CODE_KILLED)
                log_failure(TR_LOG_WARNING, &context, failure);
        tr_failure_unref(failure);
}

static void on_unheard(struct tr_timer *timer) {
        struct tr_host *host = tr_container_of(timer, struct tr_host, unheard_timer);

        tr_system_visit_ended(host->system, log_unheard, NULL);
}

/* Without memory for the timer there is the log's own line, for those who look for it. */
static void log_fault(struct tr_host *host, const struct tr_log_context *context, const struct tr_failure *failure) {
        uint64_t deadline_ns = tr_clock_deadline_ns(UNHEARD_AFTER_NS);
        int r = 0;

        log_failure(host->fault_level, context, failure);
        if (host->fault_level > TR_LOG_WARNING)
                r = tr_system_set_timer(host->system, &host->unheard_timer, deadline_ns);
        if (r < 0)
                tr_error_fold(r);
}

static void log_news(struct tr_host *host, const struct tr_news *news) {
        char handle[TR_HANDLE_SHORT + 1];
        const struct tr_log_context context = tr_target_log_context(news->target, handle);

        switch (news->event) {
        case TR_EVENT_STARTED:
                tr_log_with(TR_LOG_DEBUG, &context, "started");
                break;
        case TR_EVENT_STOPPED:
                tr_log_with(TR_LOG_DEBUG, &context, "stopped");
                break;
        case TR_EVENT_KILLED:
                tr_log_with(TR_LOG_INFO, &context, "killed");
                break;
        case TR_EVENT_FAULTED:
                log_fault(host, &context, news->failure);
                break;
        case TR_EVENT_RESTARTED:
        case TR_EVENT_SLOT_GIVEN_UP:
        case TR_EVENT_STUCK:
        case TR_EVENT_SLOW:
                break; /* logged where they are found, with what is known there */
        }
}

static void on_event(void *userdata, const struct tr_news *news) {
        struct tr_host *host = userdata;

        log_news(host, news);
        tr_watch_news(host->feed, news);
}

static void on_refused(void *userdata, const struct tr_refused *refused) {
        tr_watch_refused(((struct tr_host *)userdata)->feed, refused);
}

static void on_span(void *userdata, const struct tr_span_news *news) {
        struct tr_host *host = userdata;

        tr_watch_span(host->feed, host->traces, news);
        tr_trace_file_notice(host->trace_file);
}

static void on_task(void *userdata, const struct tr_task_news *news) {
        tr_watch_task(((struct tr_host *)userdata)->feed, news);
}

static void on_crew(void *userdata, struct tr_component *component) {
        struct tr_host *host = userdata;

        if (host->crew)
                tr_crew_see(host->crew, component);
        else
                tr_log(TR_LOG_WARNING, "component %s: its processes are not started: only a daemon does that",
                       component->target.label);
}

static void on_line(void *userdata, const struct tr_log_line *line) {
        tr_watch_line(((struct tr_host *)userdata)->feed, line);
}

/* The directories of the command line, then the configuration's. The texts stay theirs. */
static char **join_paths(char *const *first, char *const *second) {
        size_t first_count = 0, second_count = 0;
        char **all;

        while (first && first[first_count])
                first_count++;
        while (second[second_count])
                second_count++;
        all = calloc(first_count + second_count + 1, sizeof(*all));
        if (!all)
                return NULL;
        if (first_count > 0)
                memcpy(all, first, first_count * sizeof(*all));
        memcpy(all + first_count, second, second_count * sizeof(*all));
        return all;
}

static struct tr_system_limits system_limits(const struct tr_settings_limits *limits, uint64_t grace_ns) {
        return (struct tr_system_limits){
                .actors = (uint32_t)limits->actors,
                .actors_per_user = (uint32_t)limits->actors_per_user,
                .heap_bytes = limits->heap_bytes,
                .heap_max_bytes = limits->heap_max_bytes,
                .mailbox = (uint32_t)limits->mailbox,
                .mailbox_bytes = limits->mailbox_bytes,
                .async = (uint32_t)limits->async,
                .queue = (uint32_t)limits->queue,
                .memory_bytes = limits->memory_bytes,
                .slow_ns = limits->slow_ms * TR_NS_PER_MS,
                .grace_ns = grace_ns,
        };
}

int tr_host_init(struct tr_host *host, const struct tr_host_options *options) {
        const struct tr_system_limits limits = system_limits(&options->settings->limits, options->grace_ns);
        const struct tr_system_hooks hooks = {
                .wake = on_wake, .event = on_event, .refused = on_refused, .span = on_span, .crew = on_crew, .task = on_task, .userdata = host
        };
        int r;

        *host = (struct tr_host){ .fault_level = options->fault_level, .unheard_timer.fire = on_unheard };
        host->script.allow = options->allow;
        host->script.grace_ns = options->settings->grace_ms * TR_NS_PER_MS;
        host->script.nesting = (int)options->settings->limits.nesting;
        r = tr_loop_new(&host->loop);
        if (r == 0)
                r = tr_feed_new(host->loop, &host->feed);
        if (r == 0)
                r = tr_traces_new(&host->traces);
        if (r == 0)
                r = tr_trace_file_new(host->traces, &host->trace_file);
        if (r == 0) {
                host->script.path = join_paths(options->path, options->settings->path);
                r = host->script.path ? tr_actor_install_signal() : tr_error_origin(-ENOMEM);
        }
        if (r == 0)
                r = tr_system_new(&limits, &tr_script_behaviour, &host->script, &hooks, &host->system);
        if (r < 0) {
                tr_host_deinit(host);
                return tr_error_fold(r);
        }
        tr_log_set_hook(on_line, host);
        tr_loop_attach(host->loop, host->system);
        return 0;
}

void tr_host_deinit(struct tr_host *host) {
        uint32_t stuck;
        bool stopped;

        if (host->loop)
                tr_loop_attach(host->loop, NULL);
        stuck = tr_system_free(host->system);
        stopped = tr_trace_file_stop(host->trace_file);
        if (stuck > 0 || !stopped)
                return;
        /* no actor is left that could log */
        tr_log_set_hook(NULL, NULL);
        free(host->script.path);
        tr_trace_file_free(host->trace_file);
        tr_traces_free(host->traces);
        tr_feed_free(host->feed);
        tr_loop_free(host->loop);
        *host = (struct tr_host){ 0 };
}

void tr_host_set_limits(struct tr_host *host, const struct tr_settings *settings) {
        const struct tr_system_limits limits = system_limits(&settings->limits, settings->grace_ms * TR_NS_PER_MS);

        tr_system_set_limits(host->system, &limits);
}

unsigned int tr_host_allow(uint64_t allow) {
        return (allow & 1 << TR_SETTINGS_ALLOW_FILES ? TR_ALLOW_FILES : 0) |
               (allow & 1 << TR_SETTINGS_ALLOW_COMMANDS ? TR_ALLOW_COMMANDS : 0) |
               (allow & 1 << TR_SETTINGS_ALLOW_NATIVE ? TR_ALLOW_NATIVE : 0);
}
