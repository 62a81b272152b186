/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SETTINGS_COMPONENTS_H
#define TR_SETTINGS_COMPONENTS_H

#include "daemon/settings/settings.h"

/* The components of a configuration: what it names is read from where it is. */

/* Paths that are relative still, the defaults', start at a folder. 0 or -ENOMEM. */
TR_MUST_CHECK int tr_components_place(struct tr_settings_sources *sources, const char *folder);
/* Reads all manifests. 0, with a problem for each that is wrong, or a negative errno. */
TR_MUST_CHECK int tr_components_read(struct tr_settings *settings, struct tr_problems *problems);
void tr_components_deinit_settings(struct tr_settings_components *components);

#endif
