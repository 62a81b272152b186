/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_HOST_H
#define TR_HOST_H

#include "daemon/base/error.h"
#include "daemon/base/log.h"
#include "daemon/script/script.h"
#include "daemon/settings/settings.h"

struct tr_crew;
struct tr_feed;
struct tr_loop;
struct tr_system;
struct tr_trace_file;
struct tr_traces;

/*
 * What hosts actors, in a daemon as in a program that is run: the loop, the actor system on it, and Lua in that. Loop
 * thread.
 */
struct tr_host {
        struct tr_loop *loop;
        struct tr_feed *feed; /* of what happens here */
        struct tr_traces *traces;
        struct tr_trace_file *trace_file; /* not open at first */
        struct tr_system *system;
        struct tr_crew *crew; /* borrowed; NULL: no processes are started. Set before anything is declared */
        struct tr_script script;
        enum tr_log_level fault_level; /* how faults of actors are logged */
        struct tr_timer unheard_timer; /* what was logged as less than a warning is looked at again then */
};

struct tr_host_options {
        const struct tr_settings *settings;
        char *const *path;  /* searched before the settings' path; NULL-terminated */
        unsigned int allow; /* TR_ALLOW_* */
        uint64_t grace_ns;  /* of sessions that end */
        enum tr_log_level fault_level;
};

/* What the options point to outlives it; the program's members of `script` are set by the caller before an actor
 * starts. 0 or a negative errno, with nothing to deinit. */
TR_MUST_CHECK int tr_host_init(struct tr_host *host, const struct tr_host_options *options);
/* All actors have ended or are stuck. Where one is stuck, or the thread of the trace file is, all is left as it is, since they
 * may come back to it: the process has to end. Half-built and empty are fine. */
void tr_host_deinit(struct tr_host *host);

/* Other limits from now on. */
void tr_host_set_limits(struct tr_host *host, const struct tr_settings *settings);

/* A configuration's `allow` as the script layer has it. */
unsigned int tr_host_allow(uint64_t allow);

#endif
