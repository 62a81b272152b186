/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_PROCESS_H
#define TR_PROCESS_H

#include <stdint.h>

/* What the process as a whole is set to, before a second thread exists. Nothing here can fail in a way that matters:
 * what the system does not grant is logged. */

/* For every process that hosts actors. */
void tr_process_prepare(void);
/* For one that serves so many connections and hosts so many actors. */
void tr_process_prepare_server(uint64_t connections, uint64_t actors);

#endif
