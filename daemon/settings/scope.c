/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The XDG base directories. A variable that is unset, empty or relative does not count, as their specification has it;
 * then it is the usual folder in HOME, and for the runtime directory the one that a login makes.
 */
#include "config.h"

#include "daemon/settings/scope.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYSTEM_CONFIGURATION "/etc/troupe/trouped.json"

static const char *absolute(const char *variable) {
        const char *value = getenv(variable);

        return value && *value == '/' ? value : NULL;
}

static const char *home(void) {
        const char *value = absolute("HOME");
        struct passwd *entry = value ? NULL : getpwuid(getuid());

        if (value)
                return value;
        return entry && entry->pw_dir ? entry->pw_dir : "/";
}

/* The directory of the variable, else `fallback` in HOME, and `below` in it. NULL for want of memory. */
static char *base_path(const char *variable, const char *fallback, const char *below) {
        const char *base = absolute(variable);
        char *path;
        int r;

        if (base)
                r = asprintf(&path, "%s/%s", base, below);
        else
                r = asprintf(&path, "%s/%s/%s", home(), fallback, below);
        return r < 0 ? NULL : path;
}

static char *runtime_path(const char *below) {
        const char *base = absolute("XDG_RUNTIME_DIR");
        char *path;
        int r;

        if (base)
                r = asprintf(&path, "%s/%s", base, below);
        else
                r = asprintf(&path, "/run/user/%u/%s", getuid(), below);
        return r < 0 ? NULL : path;
}

char *tr_scope_configuration(enum tr_settings_scope scope) {
        if (scope == TR_SETTINGS_SYSTEM)
                return strdup(SYSTEM_CONFIGURATION);
        return base_path("XDG_CONFIG_HOME", ".config", "troupe/trouped.json");
}

/* The user's own folder before those that are there. */
static int apply_lua_path(struct tr_settings *settings) {
        size_t count = 0;
        char **path;

        while (settings->path[count])
                count++;
        path = calloc(count + 2, sizeof(*path));
        if (!path)
                return tr_error_origin(-ENOMEM);
        path[0] = base_path("XDG_DATA_HOME", ".local/share", "troupe/lua");
        if (!path[0]) {
                free(path);
                return tr_error_origin(-ENOMEM);
        }
        memcpy(path + 1, settings->path, count * sizeof(*path));
        free(settings->path);
        settings->path = path;
        return 0;
}

int tr_scope_apply_user(struct tr_settings *settings) {
        char *socket = runtime_path("troupe/troupe.sock");
        char *store = base_path("XDG_STATE_HOME", ".local/state", "troupe/troupe.db");

        if (!socket || !store) {
                free(socket);
                free(store);
                return tr_error_origin(-ENOMEM);
        }
        free(settings->socket_path);
        settings->socket_path = socket;
        free(settings->store_path);
        settings->store_path = store;
        settings->socket_mode = 0600;
        free(settings->socket_group);
        settings->socket_group = NULL;
        return tr_error_fold(apply_lua_path(settings));
}
