/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_TESTS_UNIT_LUA_FIXTURE_H
#define TR_TESTS_UNIT_LUA_FIXTURE_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "daemon/core/actor.h"
#include "daemon/script/script.h"

/*
 * Actors in Lua for tests of script: a system whose loop is the test's own thread, modules written into a folder of
 * the test's own, and questions whose answers come as text.
 *
 * A question is answered with the value as JSON has it (strings in quotes), or with "CODE/RAN: MESSAGE". In what is a
 * fault the kind stands behind the code: "fault(heap)/yes: ...". Of the paths of modules only the names are told.
 */
struct lua_fixture {
        struct tr_script script;
        struct tr_system *system;
        void (*before_free)(struct lua_fixture *fixture); /* when no actor is left; NULL: nothing is to be done */
        void *store; /* lua_component.c's */
        sem_t woken;
        char directory[64];
        char *path[2];
        _Atomic int events[TR_EVENT_SLOW + 1];
        _Atomic int refused;
};

/* One question. It is held by who asks, and by its message, which may outlive the answer. */
struct lua_asked {
        struct tr_asker asker;
        _Atomic int refs;
        struct lua_fixture *fixture;
        _Atomic bool settled;
        char *text;                 /* set before it is settled */
        struct tr_failure *failure; /* strong; NULL: it was answered */
};

void lua_fixture_init(struct lua_fixture *fixture, unsigned int allow);
/* Ends the daemon's session, waits for all threads. No memory of any heap may be left. */
void lua_fixture_deinit(struct lua_fixture *fixture);

/* Writes NAME.lua into the folder; `require "troupe"` stands in front of it, on the same line as the text's first. */
void lua_fixture_module(struct lua_fixture *fixture, const char *name, const char *text);
/* Starts an actor in the daemon's session; the caller's reference. `options` may be NULL. */
struct tr_target *lua_fixture_spawn(struct lua_fixture *fixture, const char *actor,
                                    const struct tr_actor_options *options);

/* Called, where a test sets it, when a question is made and not yet sent. */
extern void (*lua_before_send)(void);

/* Asks; `argument` NULL: without one, else a string. */
struct lua_asked *lua_ask(struct lua_fixture *fixture, struct tr_target *target, const char *handler,
                          const char *argument);
/* Asks for the actor's end: "null", or how. */
struct lua_asked *lua_watch(struct lua_fixture *fixture, struct tr_target *target);
/* Plays the loop until it is settled; its text, valid until lua_asked_unref(). */
const char *lua_wait(struct lua_asked *asked);
void lua_asked_unref(struct lua_asked *asked);

/* A question and its answer, freed by the caller. */
char *lua_answer(struct lua_fixture *fixture, struct tr_target *target, const char *handler, const char *argument);
char *lua_end(struct lua_fixture *fixture, struct tr_target *target);

/* Plays the loop until the condition says so. */
void lua_run_until(struct lua_fixture *fixture, bool (*condition)(void *userdata), void *userdata);

/* Checks a question's answer, or an actor's end. */
#define ck_assert_answer(fixture, target, handler, expected)                \
        do {                                                                \
                char *answer_ = lua_answer(fixture, target, handler, NULL); \
                ck_assert_str_eq(answer_, expected);                        \
                free(answer_);                                              \
        } while (0)
#define ck_assert_end(fixture, target, expected)       \
        do {                                           \
                char *end_ = lua_end(fixture, target); \
                ck_assert_str_eq(end_, expected);      \
                free(end_);                            \
        } while (0)

/*
 * Runs `body` as the asynchronous handler `run` of an actor of its own, whose module, `m`, begins with `before`, and
 * checks what that comes to; the actor is stopped, orderly, after.
 */
void lua_expect(struct lua_fixture *fixture, const char *before, const char *body, const char *expected);

/* A field of how it failed, as JSON has it; NULL where there is none. Freed by the caller. */
char *lua_failure_field(const struct tr_failure *failure, const char *key);

#endif
