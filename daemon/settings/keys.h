/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SETTINGS_KEYS_H
#define TR_SETTINGS_KEYS_H

#include "daemon/settings/reader.h"

/* The table of all keys of a configuration, which is read into a struct tr_settings. */
extern const struct tr_key tr_settings_keys[];

/* `actors`: a list into a struct tr_settings_actors. */
tr_read_fn tr_read_actors;
/* `pools`: a list into a struct tr_settings_pools. */
tr_read_fn tr_read_pools;
/* `args`: a list of any values, into a struct tr_settings_args. */
tr_read_fn tr_read_args;
/* `components`: folders, files or manifests, into a struct tr_settings_sources (components.c). */
tr_read_fn tr_read_components;
/* `access`: rules, each of a user or of a group, into a struct tr_settings_access. */
tr_read_fn tr_read_access;
/* `names` of an access rule: patterns, into a char **. */
tr_read_fn tr_read_patterns;

struct tr_settings_actors;
void tr_settings_actors_deinit(struct tr_settings_actors *actors);
struct tr_settings_pools;
void tr_settings_pools_deinit(struct tr_settings_pools *pools);
struct tr_settings_access;
void tr_settings_access_deinit(struct tr_settings_access *access);
struct tr_settings_sources;
void tr_settings_sources_deinit(struct tr_settings_sources *sources);

#endif
