/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_BENCH_SOCKET_H
#define TR_BENCH_SOCKET_H

#include <stddef.h>
#include <stdint.h>

/*
 * What the measuring programs need of sockets and time. They measure, and have
 * nobody to tell an error to: each of these ends the program where it fails.
 */

_Noreturn void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

int bench_connect(const char *path);
void bench_write(int fd, const void *data, size_t bytes);
/* At least one byte. */
size_t bench_read(int fd, void *data, size_t bytes);

/* Nanoseconds on the monotonic clock. */
uint64_t bench_now_ns(void);
/* A count of 1 and more. */
uint64_t bench_count(const char *text);

#endif
