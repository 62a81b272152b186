/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The new text goes to a file beside the old one, and to the disk; then it takes the old one's name, and that goes to the disk.
 */
#include "client/command/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the file has, or what any new one would have. */
static mode_t mode_of(const char *path) {
        struct stat old;
        mode_t mask;

        if (!stat(path, &old))
                return old.st_mode & 07777;
        mask = umask(0);
        umask(mask);
        return 0666 & ~mask;
}

static int write_all(int fd, const char *data, size_t bytes) {
        while (bytes > 0) {
                ssize_t n = write(fd, data, bytes);

                if (n < 0 && errno != EINTR)
                        return -errno;
                data += n > 0 ? n : 0;
                bytes -= n > 0 ? n : 0;
        }
        return 0;
}

static int fill(int fd, const char *path, const void *data, size_t bytes) {
        int r = write_all(fd, data, bytes);

        if (!r && (fchmod(fd, mode_of(path)) < 0 || fsync(fd) < 0))
                r = -errno;
        return r;
}

/* The folder has the new name on the disk. */
static int sync_folder_of(char *path) {
        int fd = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = fd < 0 || fsync(fd) < 0 ? -errno : 0;

        if (fd >= 0)
                close(fd);
        return r;
}

int tr_replace_file(const char *path, const void *data, size_t bytes) {
        char *beside;
        int fd, r;

        if (asprintf(&beside, "%s.XXXXXX", path) < 0)
                return -ENOMEM;
        fd = mkostemp(beside, O_CLOEXEC);
        r = fd < 0 ? -errno : fill(fd, path, data, bytes);
        if (fd >= 0 && close(fd) < 0 && !r)
                r = -errno;
        if (!r && rename(beside, path) < 0)
                r = -errno;
        if (r && fd >= 0)
                unlink(beside);
        else if (!r)
                r = sync_folder_of(beside);
        free(beside);
        return r;
}
