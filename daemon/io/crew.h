/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_CREW_H
#define TR_IO_CREW_H

#include <stdint.h>

#include "daemon/base/error.h"

struct tr_component;
struct tr_crew;
struct tr_loop;
struct tr_server;
struct tr_system;

/*
 * The crew: processes that the daemon starts to serve components, as the manifests' `process` says. Each has one end of a pair of
 * sockets, on which it serves its component like anybody else; the daemon keeps the other, as a confined connection.
 *
 *      vacant --start--> starting --it serves--> current --its socket is done with, or it has ended--> leaving --ended--> vacant ...
 *
 * A process that does not serve within ten seconds counts as failed. Who has ended is replaced after a pause, as a pool's workers are. Who
 * is to leave is sent SIGTERM when nothing is in its hands any more, and SIGKILL after the grace.
 */

/* Loop thread. 0 or a negative errno. */
TR_MUST_CHECK int tr_crew_new(struct tr_loop *loop, struct tr_system *system, struct tr_server *server, uint64_t grace_ns,
                              struct tr_crew **ret_crew);
/* For a reload: of processes that start from now on. Loop thread. */
void tr_crew_set_grace(struct tr_crew *crew, uint64_t grace_ns);
/* Kills who is left. NULL is fine. Loop thread. */
void tr_crew_free(struct tr_crew *crew);

/* Any thread, no lock held: a component was declared, changed or is stopping. Its processes are seen to soon. (tr_system_hooks.crew) */
void tr_crew_see(struct tr_crew *crew, struct tr_component *component);

#endif
