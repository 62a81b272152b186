/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_SYSTEMD_H
#define TR_IO_SYSTEMD_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

/*
 * What a service manager and the daemon tell each other (sd_listen_fds(3), sd_notify(3)), spoken directly: it is three
 * environment variables and a datagram. One thread at a time.
 */

/* The first descriptor that is passed. */
#define TR_SYSTEMD_FIRST_SOCKET 3

struct tr_systemd {
        unsigned int sockets;       /* passed to this process, close-on-exec from now on */
        uint64_t watchdog_ns;       /* how often it wants to hear of us at least; 0: it does not */
        struct sockaddr_un address; /* where it listens */
        socklen_t address_len;      /* 0: nowhere */
};

/* Reads the environment and takes the variables out of it, so that no child of ours believes they are meant for it. */
void tr_systemd_init(struct tr_systemd *systemd);

/* Tells it lines of "NAME=VALUE", separated by line breaks. Nothing where nobody listens; a failure is logged. */
void tr_systemd_notify(const struct tr_systemd *systemd, const char *state);

#endif
