/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration is a small regular file: a device, a pipe, or gigabytes are a mistake, and are not waited for or
 * read. */
#include "config.h"

#include "daemon/settings/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/cleanup.h"
#include "daemon/settings/problem.h"

#define BYTES_MAX (16u << 20)

static int fail(struct tr_source *source, int answer, const char *reason) {
        *source = (struct tr_source){ .reason = reason };
        return answer;
}

/* Reads until the end or until the room is full; answers how much, or a negative errno. */
static ssize_t read_all(int fd, char *room, size_t size) {
        size_t len = 0;

        while (len < size) {
                ssize_t got = read(fd, room + len, size - len);

                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return -errno;
                if (got == 0)
                        break;
                len += (size_t)got;
        }
        return (ssize_t)len;
}

int tr_source_read(const char *file, struct tr_source *ret_source) {
        TR_AUTO_CLOSE int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        TR_AUTO_FREE char *text = NULL;
        struct stat status;
        ssize_t len;

        if (fd < 0)
                return fail(ret_source, errno == ENOENT ? TR_SOURCE_MISSING : TR_SOURCE_UNREADABLE,
                            strerrordesc_np(errno));
        if (fstat(fd, &status) < 0)
                return tr_error_origin(-errno);
        if (!S_ISREG(status.st_mode))
                return fail(ret_source, TR_SOURCE_UNREADABLE, "is no regular file");
        if (status.st_size > BYTES_MAX)
                return fail(ret_source, TR_SOURCE_UNREADABLE, "is larger than 16 MiB");
        text = malloc((size_t)status.st_size + 1);
        if (!text)
                return tr_error_origin(-ENOMEM);
        len = read_all(fd, text, (size_t)status.st_size);
        if (len < 0)
                return fail(ret_source, TR_SOURCE_UNREADABLE, strerrordesc_np((int)-len));
        text[len] = '\0';
        *ret_source = (struct tr_source){ .text = tr_steal(text), .len = (size_t)len };
        return 0;
}

void tr_source_deinit(struct tr_source *source) {
        free(source->text);
        *source = (struct tr_source){ 0 };
}

int tr_source_parse(const char *file, const char *text, size_t len, struct tr_problems *problems, json_t **ret_document) {
        json_error_t error;
        json_t *document = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
        int r;

        if (document) {
                *ret_document = document;
                return 0;
        }
        if (json_error_code(&error) == json_error_out_of_memory)
                return tr_error_origin(-ENOMEM);
        r = tr_problems_add(problems, file, error.line, NULL, "%s", error.text);
        return r < 0 ? tr_error_fold(r) : TR_SOURCE_UNREADABLE;
}
