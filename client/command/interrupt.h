/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_INTERRUPT_H
#define TR_COMMAND_INTERRUPT_H

#include <poll.h>
#include <stdbool.h>

/*
 * SIGINT and SIGTERM. The first one is noted, and ends a wait in tr_interrupt_poll(): the command takes back what it
 * has asked for and says so. A second one ends the program at once, unless it has a terminal to put back. One that was ignored when the program began
 * (nohup, a shell's background job) stays ignored.
 */
void tr_interrupt_install(void);
bool tr_interrupt_happened(void);
/* From here on, or no longer, a second one is no more than the first. */
void tr_interrupt_be_patient(bool is_patient);
/* What a program that was ended so exits with. */
int tr_interrupt_exit(void);
/* As poll(2). EINTR, once, where an interrupt has come since the last call, also before this one. */
int tr_interrupt_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

#endif
