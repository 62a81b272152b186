/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/socket.h"

/*
 * threads COUNT: starts COUNT threads, each when the one before is ready: when
 * it has opened a bare Lua VM with all of Lua's libraries. Then they wait. Prints how
 * long one took and what memory one needs. The least that an actor with
 * a thread and a VM of its own can cost.
 */

/* As the daemon's threads have it. */
#define STACK_BYTES ((size_t)1 << 20)

struct crowd {
        pthread_mutex_t mutex;
        pthread_cond_t ready;
        pthread_cond_t end;
        uint64_t ready_count;
        bool over;
};

static void *member(void *data) {
        struct crowd *crowd = data;
        lua_State *L = luaL_newstate();

        if (!L)
                bench_die("out of memory");
        luaL_openlibs(L);
        pthread_mutex_lock(&crowd->mutex);
        crowd->ready_count++;
        pthread_cond_signal(&crowd->ready);
        while (!crowd->over)
                pthread_cond_wait(&crowd->end, &crowd->mutex);
        pthread_mutex_unlock(&crowd->mutex);
        lua_close(L);
        return NULL;
}

static void add_member(struct crowd *crowd, pthread_t *ret_thread, const pthread_attr_t *attributes) {
        uint64_t expected = crowd->ready_count + 1;

        if (pthread_create(ret_thread, attributes, member, crowd) != 0)
                bench_die("no thread");
        pthread_mutex_lock(&crowd->mutex);
        while (crowd->ready_count < expected)
                pthread_cond_wait(&crowd->ready, &crowd->mutex);
        pthread_mutex_unlock(&crowd->mutex);
}

static void end_all(struct crowd *crowd, const pthread_t *threads, uint64_t count) {
        pthread_mutex_lock(&crowd->mutex);
        crowd->over = true;
        pthread_cond_broadcast(&crowd->end);
        pthread_mutex_unlock(&crowd->mutex);
        for (uint64_t i = 0; i < count; i++)
                pthread_join(threads[i], NULL);
}

/* What of this process's memory no other process shares. */
static uint64_t private_kib(void) {
        FILE *stream = fopen("/proc/self/smaps_rollup", "re");
        uint64_t total = 0, kib;
        char line[256];

        if (!stream)
                bench_die("/proc/self/smaps_rollup cannot be read");
        while (fgets(line, sizeof(line), stream))
                if (sscanf(line, "Private_Clean: %lu", &kib) == 1 || sscanf(line, "Private_Dirty: %lu", &kib) == 1)
                        total += kib;
        fclose(stream);
        return total;
}

int main(int argc, char **argv) {
        struct crowd crowd = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false };
        pthread_attr_t attributes;
        uint64_t count, before_kib, began_ns, took_ns;
        pthread_t *threads, first;

        if (argc != 2)
                bench_die("threads COUNT");
        count = bench_count(argv[1]);
        threads = calloc(count, sizeof(*threads));
        if (!threads || pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, STACK_BYTES) != 0)
                bench_die("out of memory");

        add_member(&crowd, &first, &attributes); /* what is shared by all is there now */
        before_kib = private_kib();
        began_ns = bench_now_ns();
        for (uint64_t i = 0; i < count; i++)
                add_member(&crowd, &threads[i], &attributes);
        took_ns = bench_now_ns() - began_ns;
        printf("{\"spawn_us\": %.1f, \"each_kib\": %.1f}\n", (double)took_ns / 1e3 / (double)count,
               (double)(private_kib() - before_kib) / (double)count);

        end_all(&crowd, threads, count);
        pthread_join(first, NULL);
        pthread_attr_destroy(&attributes);
        free(threads);
        return 0;
}
