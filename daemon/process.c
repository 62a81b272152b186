/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process: its allocator and its limits. A configuration may promise more connections and actors than the system
 * lets the process have; that is no reason not to start, but whoever reads the log should know before it is reached.
 */
#include "config.h"

#include "daemon/process.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/log.h"

/* Descriptors beside those of connections: the loop's, listeners, the log, files that Lua code has open. */
#define OTHER_DESCRIPTORS 256
/* Threads beside those of actors. */
#define OTHER_THREADS 8

void tr_process_prepare(void) {
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);

        /* By default there are eight arenas for each CPU, and a thousand threads fill them all with what they never
         * give back; two for each keep allocations from waiting for each other as well. */
        mallopt(M_ARENA_MAX, cpus > 0 ? (int)cpus * 2 : 4);
}

static void raise_descriptors(uint64_t connections) {
        rlim_t wanted = (rlim_t)connections + OTHER_DESCRIPTORS;
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
                return;
        limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                getrlimit(RLIMIT_NOFILE, &limit);
        if (limit.rlim_cur < wanted)
                tr_log(TR_LOG_WARNING, "limits.connections is %llu, but the system allows %llu descriptors",
                       (unsigned long long)connections, (unsigned long long)limit.rlim_cur);
}

/* The number in a file; false where there is none ("max"). */
static bool read_number(const char *path, uint64_t *ret_number) {
        FILE *stream = fopen(path, "re");
        char line[32] = "";

        if (!stream)
                return false;
        if (!fgets(line, sizeof(line), stream))
                line[0] = '\0';
        fclose(stream);
        if (*line < '0' || *line > '9')
                return false;
        *ret_number = strtoull(line, NULL, 10);
        return true;
}

/* The process's control group as /proc tells it ("0::/system.slice/trouped.service"), the caller's; NULL where it
 * tells none. */
static char *control_group(void) {
        TR_AUTO_FREE char *line = NULL;
        FILE *stream = fopen("/proc/self/cgroup", "re");
        char *group = NULL;
        size_t room = 0;

        while (stream && !group && getline(&line, &room, stream) > 0)
                if (strncmp(line, "0::/", 4) == 0)
                        group = strndup(line + 3, strcspn(line + 3, "\n"));
        if (stream)
                fclose(stream);
        return group;
}

static void check_threads(uint64_t actors) {
        TR_AUTO_FREE char *group = control_group(), *path = NULL;
        uint64_t allowed;

        if (!group || asprintf(&path, "/sys/fs/cgroup%s/pids.max", group) < 0) {
                path = NULL;
                return;
        }
        if (read_number(path, &allowed) && allowed < actors + OTHER_THREADS)
                tr_log(TR_LOG_WARNING, "limits.actors is %llu, but the system allows %llu threads",
                       (unsigned long long)actors, (unsigned long long)allowed);
}

void tr_process_prepare_server(uint64_t connections, uint64_t actors) {
        /* a peer that is gone is an error of that write */
        signal(SIGPIPE, SIG_IGN);
        /* a file that may not grow, too: the store refuses what it cannot write then */
        signal(SIGXFSZ, SIG_IGN);
        raise_descriptors(connections);
        check_threads(actors);
}
