/* SPDX-License-Identifier: Apache-2.0 */

/*
 * os.execute and io.popen.
 *
 * Those of the C library sit through signals, and start commands with the signal mask of an actor's thread, in which
 * nothing is delivered. Here a command gets a clean mask and a process group of its own, and who waits for it looks
 * for a kill whenever a signal interrupts the wait; then the whole group is killed.
 */

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <lualib.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/script/kill.h"
#include "daemon/script/stdlib.h"
#include "daemon/script/vm.h"

/* What io.popen answers: a file of the io library that knows its command. */
struct command_file {
        luaL_Stream stream; /* first */
        pid_t pid;
};

/* Starts `sh -c command`, with `fd` (-1: none) as its descriptor `as_fd`. 0 or a positive errno. */
static int start(const char *command, int fd, int as_fd, pid_t *ret_pid) {
        char *const arguments[] = { (char *)"sh", (char *)"-c", (char *)command, NULL };
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t none, all;
        int r;

        sigemptyset(&none);
        sigfillset(&all);
        r = posix_spawnattr_init(&attributes);
        if (r != 0)
                return r;
        r = posix_spawn_file_actions_init(&actions);
        if (r != 0) {
                posix_spawnattr_destroy(&attributes);
                return r;
        }
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &all);
        if (fd >= 0)
                r = posix_spawn_file_actions_adddup2(&actions, fd, as_fd);
        if (r == 0)
                r = posix_spawn(ret_pid, "/bin/sh", &actions, &attributes, arguments, environ);
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
        return r;
}

/* Waits for a command; kills it where the actor is killed, or its VM is being closed. -1 with errno, or the wait's
 * status. */
static int wait_for(struct tr_vm *vm, pid_t pid) {
        int status;
        pid_t r;

        for (;;) {
                if (!vm->running || tr_actor_is_killed(vm->actor))
                        kill(-pid, SIGKILL);
                r = waitpid(pid, &status, 0);
                if (r == pid) {
                        errno = 0; /* luaL_execresult() asks for it */
                        return status;
                }
                if (errno != EINTR)
                        return -1;
        }
}

/* os.execute(command) */
static int execute(lua_State *L) {
        struct tr_vm *vm = tr_vm_of(L);
        const char *command;
        int status, r;
        pid_t pid;

        if (lua_isnoneornil(L, 1)) {
                lua_pushboolean(L, true);
                return 1;
        }
        command = luaL_checkstring(L, 1);
        r = start(command, -1, -1, &pid);
        if (r != 0) {
                errno = r;
                return luaL_fileresult(L, 0, NULL);
        }
        status = wait_for(vm, pid);
        if (tr_vm_is_doomed(vm))
                return tr_vm_give_up(L);
        return luaL_execresult(L, status);
}

static int close_command(lua_State *L) {
        struct command_file *file = luaL_checkudata(L, 1, LUA_FILEHANDLE);
        struct tr_vm *vm = tr_vm_of(L);

        if (!vm->running || tr_actor_is_killed(vm->actor))
                kill(-file->pid, SIGKILL);
        fclose(file->stream.f);
        return luaL_execresult(L, wait_for(vm, file->pid));
}

/* io.popen(command, mode) */
static int popen_(lua_State *L) {
        const char *command = luaL_checkstring(L, 1);
        const char *mode = luaL_optstring(L, 2, "r");
        struct command_file *file;
        bool reads = *mode == 'r';
        int fds[2], r;

        luaL_argcheck(L, (*mode == 'r' || *mode == 'w') && mode[1] == 0, 2, "invalid mode");
        file = lua_newuserdatauv(L, sizeof(*file), 0);
        *file = (struct command_file){ 0 };
        luaL_setmetatable(L, LUA_FILEHANDLE); /* closed as long as closef is NULL */

        if (pipe2(fds, O_CLOEXEC) < 0)
                return luaL_fileresult(L, 0, command);
        r = start(command, fds[reads ? 1 : 0], reads ? STDOUT_FILENO : STDIN_FILENO, &file->pid);
        close(fds[reads ? 1 : 0]);
        if (r == 0) {
                file->stream.f = fdopen(fds[reads ? 0 : 1], mode);
                r = file->stream.f ? 0 : errno;
        }
        if (r != 0) {
                close(fds[reads ? 0 : 1]);
                if (file->pid > 0) {
                        kill(-file->pid, SIGKILL);
                        waitpid(file->pid, NULL, 0);
                }
                errno = r;
                return luaL_fileresult(L, 0, command);
        }
        file->stream.closef = close_command;
        return 1;
}

void tr_command_open(lua_State *L) {
        lua_getglobal(L, LUA_OSLIBNAME);
        lua_pushcfunction(L, execute);
        lua_setfield(L, -2, "execute");
        lua_getglobal(L, LUA_IOLIBNAME);
        lua_pushcfunction(L, popen_);
        lua_setfield(L, -2, "popen");
        lua_pop(L, 2);
}
