/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which file a module would be loaded from now, and what is in it: how a reload sees that it has changed. It looks where `require`
 * looks (module.c), in the same order, but for modules written in C, which no process loads twice.
 */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/script/script.h"
#include "daemon/script/source.h"

_Static_assert(TR_MODULE_HASH_SIZE == TR_SOURCE_HASH_SIZE, "they are the same hash");

/* A file for the module, with its dots as slashes. */
static char *candidate(const char *directory, const char *module, int len, const char *ending) {
        char *path;

        if (asprintf(&path, "%s/%.*s%s", directory, len, module, ending) < 0)
                return NULL;
        for (char *at = path + strlen(directory); at < path + strlen(directory) + 1 + len; at++)
                if (*at == '.')
                        *at = '/';
        return path;
}

static bool hash_file(const char *path, size_t root_len, char ret_hash[TR_MODULE_HASH_SIZE]) {
        size_t unsafe_len;
        int fd, error;
        bool hashed;

        if (tr_source_open(path, root_len, &fd, &error, &unsafe_len) != TR_SOURCE_OPEN)
                return false;
        hashed = tr_source_hash(fd, ret_hash);
        close(fd);
        return hashed;
}

static bool hash_in(const char *directory, const char *module, int len, char ret_hash[TR_MODULE_HASH_SIZE]) {
        static const char *const endings[] = { ".lua", "/init.lua" };

        for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
                TR_AUTO_FREE char *path = candidate(directory, module, len, endings[i]);

                if (path && hash_file(path, strlen(directory), ret_hash))
                        return true;
        }
        return false;
}

void tr_script_module_hash(const struct tr_script *script, const char *actor, char ret_hash[TR_MODULE_HASH_SIZE]) {
        int len = (int)strcspn(actor, ":");

        ret_hash[0] = '\0';
        if (script->program_dir && hash_in(script->program_dir, actor, len, ret_hash))
                return;
        for (char *const *directory = script->path; directory && *directory; directory++)
                if (hash_in(*directory, actor, len, ret_hash))
                        return;
}
