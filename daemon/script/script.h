/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_SCRIPT_H
#define TR_SCRIPT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/core/actor.h"

/*
 * Lua as the behaviour of actors: all that the daemon's top level sees of this layer.
 */

/* What Lua code may reach outside (the configuration's `allow`). */
enum {
        TR_ALLOW_FILES = 1 << 0,
        TR_ALLOW_COMMANDS = 1 << 1,
        TR_ALLOW_NATIVE = 1 << 2,
};

/* Shared by all VMs of a daemon; immutable while any of them lives. */
struct tr_script {
        char **path;        /* directories searched for modules, in order, NULL-terminated */
        unsigned int allow; /* TR_ALLOW_* */
        int nesting;        /* levels of a value that is sent, at most TR_NESTING_MAX */
        uint64_t
                grace_ns; /* how long a child may take whose supervisor has told it to stop; in a program too, where nobody else's stop is bounded */
        /* `trouped run` only, else NULL: the program's file, its directory (searched first), its module name, its
         * arguments. A file that declares no main ends the program's actor with a failure of the code `load` whose
         * `kind` is "no-main". */
        const char *program_file;
        const char *program_dir;
        const char *program_module;
        char **program_args; /* NULL-terminated */
};

extern const struct tr_behaviour tr_script_behaviour;

/* Hexadecimal digits of a module's hash, as `info` has them, and a NUL. */
#define TR_MODULE_HASH_SIZE 33

/* The hash of the file that the module of an actor ("module" or "module:Name") would be loaded from now; "" where there is none that
 * may be loaded. Any thread. */
void tr_script_module_hash(const struct tr_script *script, const char *actor, char ret_hash[TR_MODULE_HASH_SIZE]);

#endif
