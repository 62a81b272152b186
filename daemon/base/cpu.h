/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_BASE_CPU_H
#define TR_BASE_CPU_H

#include <stdint.h>

/* How many CPUs this process may use: those of its affinity, and no more than the quota of its control groups is worth (rounded up).
 * 0 where that cannot be read. Any thread. */
uint32_t tr_cpu_count(void);

/* The quota alone: of the group `group` ("/a/b") and of those around it, below the mount point of cgroup v2 at `root`. UINT32_MAX: none. */
uint32_t tr_cpu_quota(const char *root, const char *group);

#endif
