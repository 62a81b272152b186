/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs: what the quotas of control groups are worth. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/cpu.h"
#include "tests/unit/suite.h"

static char root[] = "/tmp/troupe-cpu-XXXXXX";

/* The cpu.max of a group below the root. */
static void write_max(const char *group, const char *text) {
        char path[256];
        snprintf(path, sizeof(path), "%s%s", root, group);
        mkdir(path, 0700);
        snprintf(path, sizeof(path), "%s%s/cpu.max", root, group);
        FILE *stream = fopen(path, "w");
        ck_assert_ptr_nonnull(stream);
        fputs(text, stream);
        fclose(stream);
}

static void remove_max(const char *group) {
        char path[256];
        snprintf(path, sizeof(path), "%s%s/cpu.max", root, group);
        unlink(path);
        snprintf(path, sizeof(path), "%s%s", root, group);
        rmdir(path);
}

START_TEST(the_least_quota_around_it_counts) {
        ck_assert_ptr_nonnull(mkdtemp(root));
        ck_assert_uint_eq(tr_cpu_quota(root, "/"), UINT32_MAX);
        write_max("/a", "400000 100000\n");
        write_max("/a/b", "max 100000\n");
        write_max("/a/b/c", "150000 100000\n");
        ck_assert_uint_eq(tr_cpu_quota(root, "/"), UINT32_MAX);
        ck_assert_uint_eq(tr_cpu_quota(root, "/a"), 4);
        ck_assert_uint_eq(tr_cpu_quota(root, "/a/b"), 4);
        ck_assert_uint_eq(tr_cpu_quota(root, "/a/b/c"), 2);
        ck_assert_uint_eq(tr_cpu_quota(root, "/a/b/c/none"), 2);
        write_max("/a/b/c", "1000 100000\n");
        ck_assert_uint_eq(tr_cpu_quota(root, "/a/b/c"), 1);
        write_max("/a/b/c", "nonsense\n");
        ck_assert_uint_eq(tr_cpu_quota(root, "/a/b/c/"), 4);
        remove_max("/a/b/c");
        remove_max("/a/b");
        remove_max("/a");
        rmdir(root);
}
END_TEST

START_TEST(there_are_some) {
        ck_assert_uint_gt(tr_cpu_count(), 0);
        ck_assert_uint_le(tr_cpu_count(), (unsigned int)sysconf(_SC_NPROCESSORS_CONF));
}
END_TEST

suite_main("cpu", the_least_quota_around_it_counts, there_are_some);
