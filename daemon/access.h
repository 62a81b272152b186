/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_ACCESS_H
#define TR_ACCESS_H

#include "daemon/settings/settings.h"

struct tr_access;

/*
 * The rules of access that a configuration has, with the users and groups that it names as this system numbers them: a name is
 * looked up first, what is none and has digits only is the number itself. A rule for a user or group that is not there, or is nobody,
 * matches nobody; *notes gets that. Loop thread, or before there is one. 0 or -ENOMEM.
 */
TR_MUST_CHECK int tr_access_resolve(const struct tr_settings *settings, struct tr_problems *notes,
                                    struct tr_access *ret_access);

#endif
