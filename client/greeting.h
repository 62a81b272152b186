/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CLIENT_GREETING_H
#define TR_CLIENT_GREETING_H

#include "client/connection.h"

/*
 * What every connection to the daemon begins with: the library's hello and, where it takes the place of one that broke,
 * all that was agreed on before.
 */

/* The connection has ended, and there is to be another: everything must be said again. */
void tr_greeting_begin(struct troupe *troupe);
/* Writes what is still to be said; nothing may be written before that is done. 0 or -ENOMEM, to be tried again. */
TR_MUST_CHECK int tr_greeting_write(struct troupe *troupe);
/* Whether there is anything to tell the program of. */
bool tr_greeting_has_news(const struct troupe *troupe);
/* Tells it. */
void tr_greeting_tell(struct troupe *troupe);

#endif
