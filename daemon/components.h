/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMPONENTS_H
#define TR_COMPONENTS_H

#include "daemon/base/error.h"
#include "daemon/settings/settings.h"

struct tr_configured_components;
struct tr_loop;
struct tr_script;
struct tr_system;

/*
 * Configured components: they are the daemon's own. One that cannot be declared (a session has its name) is logged, and the daemon goes
 * on. Loop thread.
 */
struct tr_configured_components_options {
        struct tr_loop *loop;
        struct tr_system *system;
        const struct tr_script *script;
        /* Once, on the loop thread: every replica of a module of those that were set first has finished its init or failed once. */
        void (*ready)(void *userdata);
        void *userdata;
};

/* What the options point to outlives it. 0 or -ENOMEM. */
TR_MUST_CHECK int tr_configured_components_new(const struct tr_configured_components_options *options,
                                               struct tr_configured_components **ret_components);
/*
 * They are these from now on. What is gone is stopped, orderly within the grace. What has another manifest, or a module that is
 * another one on disk, is replaced, replica by replica. NULL, or why some could not be declared, the caller's; the others are.
 */
struct tr_failure *tr_configured_components_set(struct tr_configured_components *components,
                                                const struct tr_settings_components *settings);
/* The components go on. NULL is fine. */
void tr_configured_components_free(struct tr_configured_components *components);

#endif
