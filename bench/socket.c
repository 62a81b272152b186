/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "bench/socket.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/*
 * Blocking sockets with plain read and write: what is measured is the other
 * side, and this is the cheapest way to wait for it.
 */

void bench_die(const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        fputs("bench: ", stderr);
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
        va_end(arguments);
        exit(1);
}

int bench_connect(const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd;

        if (strlen(path) >= sizeof(address.sun_path))
                bench_die("%s: too long for a socket", path);
        memcpy(address.sun_path, path, strlen(path) + 1);

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
                bench_die("%s: %s", path, strerror(errno));
        return fd;
}

void bench_write(int fd, const void *data, size_t bytes) {
        while (bytes > 0) {
                ssize_t n = write(fd, data, bytes);

                if (n < 0)
                        bench_die("write: %s", strerror(errno));
                data = (const uint8_t *)data + n;
                bytes -= (size_t)n;
        }
}

size_t bench_read(int fd, void *data, size_t bytes) {
        ssize_t n = read(fd, data, bytes);

        if (n < 0)
                bench_die("read: %s", strerror(errno));
        if (n == 0)
                bench_die("the other side closed the connection");
        return (size_t)n;
}

uint64_t bench_now_ns(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t bench_count(const char *text) {
        char *end;
        unsigned long long count;

        errno = 0;
        count = strtoull(text, &end, 10);
        if (errno || *end || end == text || count == 0)
                bench_die("%s: not a count", text);
        return count;
}
