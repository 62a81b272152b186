/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * ThreadSanitizer and Lua's errors.
 *
 * ThreadSanitizer keeps a stack of its own for each thread, and unwinds it where it intercepts longjmp(). Lua raises and yields with
 * _longjmp(), which a fortified liblua calls as __longjmp_chk(): the sanitizer knows neither, so every error and every await would
 * leave its frames on that stack, until it overflows after some ten thousand of them and the process is aborted.
 *
 * So both names lead to longjmp() in such builds, which alone have this file. The linker is told to want the names (-u), for nothing
 * of ours refers to them.
 */
#include <setjmp.h>

_Noreturn __attribute__((visibility("default"))) void __longjmp_chk(struct __jmp_buf_tag env[1], int value);

_Noreturn void __longjmp_chk(struct __jmp_buf_tag env[1], int value) {
        longjmp(env, value);
}

_Noreturn __attribute__((visibility("default"))) void _longjmp(struct __jmp_buf_tag env[1], int value) {
        longjmp(env, value);
}
