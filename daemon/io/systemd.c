/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service manager's side of the daemon. Variables that make no sense are ignored with a warning: a daemon that does
 * not start because of them could not say so to anybody.
 */
#include "config.h"

#include "daemon/io/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"

/* More than any unit has; a typing mistake must not make us touch a billion descriptors. */
#define SOCKETS_MAX 1024

/* The number that a variable holds, which is taken out of the environment. False where there is none. */
static bool take_number(const char *name, uint64_t *ret_number) {
        const char *text = getenv(name);
        bool is_number = false;
        char *end;

        if (!text)
                return false;
        if (*text >= '0' && *text <= '9') {
                errno = 0;
                *ret_number = strtoull(text, &end, 10);
                is_number = errno == 0 && *end == '\0';
        }
        if (!is_number)
                tr_log(TR_LOG_WARNING, "%s=%s is no number and is ignored", name, text);
        unsetenv(name);
        return is_number;
}

static unsigned int take_sockets(void) {
        uint64_t pid = 0, count = 0;
        bool has_pid = take_number("LISTEN_PID", &pid), has_count = take_number("LISTEN_FDS", &count);

        unsetenv("LISTEN_FDNAMES");
        /* they may have been meant for the process that started us */
        if (!has_pid || !has_count || pid != (uint64_t)getpid())
                return 0;
        if (count > SOCKETS_MAX) {
                tr_log(TR_LOG_WARNING, "LISTEN_FDS=%llu is ignored", (unsigned long long)count);
                return 0;
        }
        for (unsigned int i = 0; i < count; i++)
                if (fcntl(TR_SYSTEMD_FIRST_SOCKET + (int)i, F_SETFD, FD_CLOEXEC) < 0) {
                        tr_log(TR_LOG_WARNING, "LISTEN_FDS=%llu, and descriptor %u is not open",
                               (unsigned long long)count, TR_SYSTEMD_FIRST_SOCKET + i);
                        return i;
                }
        return (unsigned int)count;
}

static uint64_t take_watchdog_ns(void) {
        uint64_t pid = 0, us = 0;
        bool has_pid = take_number("WATCHDOG_PID", &pid), has_us = take_number("WATCHDOG_USEC", &us);

        if (!has_us || (has_pid && pid != (uint64_t)getpid()) || us > UINT64_MAX / TR_NS_PER_US)
                return 0;
        return us * TR_NS_PER_US;
}

static void take_address(struct tr_systemd *systemd) {
        const char *path = getenv("NOTIFY_SOCKET");
        size_t len = path ? strlen(path) : 0;

        if (len == 0)
                return;
        if ((*path != '/' && *path != '@') || len >= sizeof(systemd->address.sun_path)) {
                tr_log(TR_LOG_WARNING, "NOTIFY_SOCKET=%s is no socket and is ignored", path);
        } else {
                systemd->address.sun_family = AF_UNIX;
                memcpy(systemd->address.sun_path, path, len);
                /* an abstract address begins with a NUL */
                if (*path == '@')
                        systemd->address.sun_path[0] = '\0';
                systemd->address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
        }
        unsetenv("NOTIFY_SOCKET");
}

void tr_systemd_init(struct tr_systemd *systemd) {
        *systemd = (struct tr_systemd){ 0 };
        systemd->sockets = take_sockets();
        systemd->watchdog_ns = take_watchdog_ns();
        take_address(systemd);
}

void tr_systemd_notify(const struct tr_systemd *systemd, const char *state) {
        TR_AUTO_CLOSE int fd = -1;

        if (systemd->address_len == 0)
                return;
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&systemd->address,
                             systemd->address_len) < 0)
                tr_log(TR_LOG_WARNING, "the service manager could not be told %s: %s", state, strerrordesc_np(errno));
}
