/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many CPUs there are for this process.
 *
 * A control group's cpu.max says "QUOTA PERIOD", two numbers of microseconds, or "max PERIOD" (Linux,
 * Documentation/admin-guide/cgroup-v2.rst). Every group around a process limits it. Of version 1 nothing is known here.
 */
#include "daemon/base/cpu.h"

#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define CGROUP_ROOT "/sys/fs/cgroup"

/* What one group's quota is worth. */
static uint32_t group_quota(const char *root, const char *group, int group_len) {
        char path[PATH_MAX];
        uint64_t quota_us = 0, period_us = 0;
        int len = snprintf(path, sizeof(path), "%s%.*s/cpu.max", root, group_len, group);
        FILE *stream = len > 0 && (size_t)len < sizeof(path) ? fopen(path, "re") : NULL;
        if (!stream)
                return UINT32_MAX;
        bool limited = fscanf(stream, "%" SCNu64 " %" SCNu64, &quota_us, &period_us) == 2 && period_us > 0;
        fclose(stream);
        if (!limited)
                return UINT32_MAX;
        uint64_t cpus = quota_us / period_us + (quota_us % period_us > 0);
        return cpus == 0 ? 1 : cpus < UINT32_MAX ? (uint32_t)cpus : UINT32_MAX;
}

uint32_t tr_cpu_quota(const char *root, const char *group) {
        uint32_t least = UINT32_MAX;
        size_t len = strlen(group);
        for (;;) {
                while (len > 0 && group[len - 1] == '/')
                        len--;
                uint32_t quota = group_quota(root, group, (int)len);
                least = quota < least ? quota : least;
                if (len == 0)
                        return least;
                while (len > 0 && group[len - 1] != '/')
                        len--;
        }
}

/* The quota of the groups that this process is in. */
static uint32_t own_quota(void) {
        static const char prefix[] = "0::"; /* the hierarchy of version 2 */
        char line[PATH_MAX];
        uint32_t quota = UINT32_MAX;
        FILE *stream = fopen("/proc/self/cgroup", "re");
        if (!stream)
                return quota;
        while (fgets(line, sizeof(line), stream)) {
                line[strcspn(line, "\n")] = 0;
                if (strncmp(line, prefix, strlen(prefix)) == 0)
                        quota = tr_cpu_quota(CGROUP_ROOT, line + strlen(prefix));
        }
        fclose(stream);
        return quota;
}

uint32_t tr_cpu_count(void) {
        cpu_set_t set;
        if (sched_getaffinity(0, sizeof(set), &set) != 0)
                return 0;
        uint32_t count = (uint32_t)CPU_COUNT(&set), quota = own_quota();
        return count < quota ? count : quota;
}
