/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process.h"

#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/log.h"

/* Descriptors beside those of connections: the loop's, listeners, the log, files that Lua code has open. */
#define OTHER_DESCRIPTORS 256

void tr_process_prepare(void) {
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);

        /* By default there are eight arenas for each CPU, and a thousand threads fill them all with what they never give
         * back; two for each keep allocations from waiting for each other as well. */
        mallopt(M_ARENA_MAX, cpus > 0 ? (int)cpus * 2 : 4);
}

void tr_process_prepare_server(uint64_t connections) {
        rlim_t wanted = (rlim_t)connections + OTHER_DESCRIPTORS;
        struct rlimit limit;

        /* a peer that is gone is an error of that write */
        signal(SIGPIPE, SIG_IGN);

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
                return;
        limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        if (limit.rlim_cur < wanted)
                tr_log(TR_LOG_WARNING, "limits.connections is %llu, but the system allows %llu descriptors",
                       (unsigned long long)connections, (unsigned long long)limit.rlim_cur);
}
