/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/lua_fixture.h"
/* on a machine that is busy, with a sanitizer */
#define SUITE_TIMEOUT_S 120
#include "tests/unit/suite.h"

/* What `require` finds and runs, and what may not happen while a file's top level runs. */

static struct lua_fixture fixture;

static void expect(const char *body, const char *expected) {
        lua_expect(&fixture, "", body, expected);
}

static void check_load(const char *module, const char *text, const char *expected) {
        struct tr_target *target;

        lua_fixture_module(&fixture, module, text);
        target = lua_fixture_spawn(&fixture, module, NULL);
        ck_assert_end(&fixture, target, expected);
        tr_target_unref(target);
}

static void path_of(char *ret_path, size_t size, const char *name) {
        snprintf(ret_path, size, "%s/%s", fixture.directory, name);
}

START_TEST(a_module_runs_once_per_vm) {
        lua_fixture_init(&fixture, 0);
        lua_fixture_module(&fixture, "state",
                           "local M = { n = 0 } function M.next() M.n = M.n + 1 return M.n end return M");
        lua_fixture_module(&fixture, "nothing", "count = (rawget(_G, 'count') or 0) + 1");
        expect("return { require 'state'.next(), require 'state'.next(), require 'state' == package.loaded.state }",
               "[1,2,true]");
        expect("return { require 'nothing', require 'nothing', count }", "[true,true,1]");
        lua_expect(
                &fixture,
                "local state = require 'state' local B = troupe.actor 'B' function B.on:next() return state.next() end",
                "local b, c = troupe.spawn(B), troupe.spawn(B)\n"
                "return troupe.all { troupe.ask(b.next), troupe.ask(b.next), troupe.ask(c.next) }",
                "[1,2,1]");
        expect("return { pcall(require, 'troupe') == true, require 'troupe' == troupe, require 'string' == string }",
               "[true,true,true]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(dots_are_folders) {
        char folder[256], file[256];

        lua_fixture_init(&fixture, 0);
        path_of(folder, sizeof(folder), "a");
        ck_assert_int_eq(mkdir(folder, 0700), 0);
        lua_fixture_module(&fixture, "a/b", "return 'a.b'");
        lua_fixture_module(&fixture, "a/init", "return 'a'");
        expect("return { require 'a', require 'a.b' }", "[\"a\",\"a.b\"]");
        path_of(file, sizeof(file), "a/b.lua");
        unlink(file);
        path_of(file, sizeof(file), "a/init.lua");
        unlink(file);
        rmdir(folder);
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(what_is_not_there_names_what_was_tried) {
        lua_fixture_init(&fixture, 0);
        expect("local ok, e = pcall(require, 'none') return { e.code, e.message }",
               "[\"not-found\",\"there is no module `none`; tried: none.lua, none/init.lua\"]");
        expect("local ok, e = pcall(require, '../m') return { e.code, e.message }",
               "[\"not-found\",\"there is no module `../m`: that is no name of a module\"]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(one_that_fails_may_be_tried_again) {
        lua_fixture_init(&fixture, 0);
        lua_fixture_module(&fixture, "half",
                           "troupe.actor 'A' if not rawget(_G, 'works') then error('half way', 0) end return 'whole'");
        expect("local ok, e = pcall(require, 'half')\n"
               "local ok2, e2 = pcall(require, 'half')\n"
               "works = true\n"
               "return { e.code, e.message, e2.message == e.message, e.traceback:match 'half.lua:1', require 'half' }",
               "[\"load\",\"the module `half` failed to load: half way\",true,\"half.lua:1\",\"whole\"]");
        lua_fixture_deinit(&fixture);
}
END_TEST

/* What a file declared that then failed is in the program's hands, and names nothing. */
START_TEST(what_a_failed_module_declared_is_nothing) {
        lua_fixture_init(&fixture, 0);
        lua_fixture_module(&fixture, "half",
                           "local A, C = troupe.actor 'A', troupe.class 'C' function C:init() end\n"
                           "local D = troupe.class 'D' rawset(_G, 'kept', { A, C, C.new(), D }) error 'half way'");
        expect("pcall(require, 'half')\n"
               "local A, C, c, D = table.unpack(rawget(_G, 'kept'))\n"
               "local function caught(f, ...) local ok, e = pcall(f, ...) assert(not ok) return e.message end\n"
               "return { caught(troupe.spawn, A), caught(troupe.send, troupe.me().x, { A }), tostring(A), caught(troupe.is, c, C),\n"
               "         caught(troupe.send, troupe.me().x, { c }), caught(C.new, 1), caught(D.new, 1) }",
               "[\"spawn: a table with a metatable is not an actor\","
               "\"a message may not carry a table with a metatable: `[1]` is a table with a metatable\","
               "\"actor of a module that failed to load\","
               "\"is: a table is not a class\","
               "\"a message may not carry a table with a metatable: `[1]` is a table with a metatable\","
               "\"a class of a module that failed to load: init takes 0 arguments, and was given 1\","
               "\"a class of a module that failed to load: without init, new takes no arguments\"]");
        lua_fixture_deinit(&fixture);
}
END_TEST

/* Also where it was taken out of package.loaded; one without declarations runs again, as in Lua. */
START_TEST(what_a_module_declares_it_declares_once) {
        const char *before = "local B = troupe.actor 'B' local C = troupe.class 'C'\n"
                             "function B.on:again() package.loaded.m = nil return select(2, pcall(require, 'm')).message end\n"
                             "function B.on:who() local w = troupe.whoami() return { w.module, w.actor, tostring(B), troupe.is(C.new(), C) } end";

        lua_fixture_init(&fixture, 0);
        lua_fixture_module(&fixture, "class", "local C = troupe.class 'C' return C");
        lua_fixture_module(&fixture, "plain", "rawset(_G, 'runs', (rawget(_G, 'runs') or 0) + 1)");
        lua_expect(&fixture, before,
                   "local b = troupe.spawn(B)\n"
                   "return troupe.all { troupe.ask(b.again), troupe.ask(b.again), troupe.ask(b.who) }",
                   "[\"the module `m` is loaded already, and what it declares is declared once\","
                   "\"the module `m` is loaded already, and what it declares is declared once\",[\"m\",\"B\",\"actor m:B\",true]]");
        expect("local C = require 'class' package.loaded.class = nil\n"
               "local _, e = pcall(require, 'class') return { e.code, e.message, troupe.is(C.new(), C) }",
               "[\"load\",\"the module `class` is loaded already, and what it declares is declared once\",true]");
        expect("require 'plain' package.loaded.plain = nil require 'plain' return rawget(_G, 'runs')", "2");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(what_does_not_load_says_why) {
        lua_fixture_init(&fixture, 0);
        check_load("syntax", "local x = = 1",
                   "load/no: the module `syntax` failed to load: syntax.lua:1: unexpected symbol near '='");
        lua_fixture_module(&fixture, "wants", "local function deep() require 'syntax' end deep()");
        expect("local ok, e = pcall(require, 'wants') return { e.code, e.traceback:match 'deep' }", "[\"load\",\"deep\"]");
        expect("local ok, e = pcall(require, 'syntax') return { e.code, e.traceback:match 'stack traceback' }",
               "[\"load\",\"stack traceback\"]");
        check_load("raises", "error('no', 0)", "load/no: the module `raises` failed to load: no");
        check_load("object", "error {}",
                   "load/no: the module `object` failed to load: (error object is a table value)");
        check_load("itself", "require 'itself'",
                   "load/no: the module `itself` failed to load: the module `itself` requires itself (itself.lua)");
        lua_fixture_module(&fixture, "ping", "require 'pong'");
        check_load("pong", "require 'ping'",
                   "load/no: the module `pong` failed to load: the module `ping` failed to load: the module `pong` "
                   "requires itself "
                   "(pong.lua)");
        check_load("outer", "require 'missing'",
                   "load/no: the module `outer` failed to load: there is no module `missing`; tried: missing.lua, "
                   "missing/init.lua");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(the_beginning_of_a_file_is_not_always_lua) {
        char path[256];
        FILE *file;

        lua_fixture_init(&fixture, 0);
        path_of(path, sizeof(path), "shell.lua");
        file = fopen(path, "w");
        fputs("\xef\xbb\xbf#!/usr/bin/env lua\nreturn debug.getinfo(1, 'l').currentline", file);
        fclose(file);
        path_of(path, sizeof(path), "empty.lua");
        fclose(fopen(path, "w"));
        path_of(path, sizeof(path), "binary.lua");
        file = fopen(path, "w");
        fputs("\x1bLua", file);
        fclose(file);
        /* the second time it has been compiled before */
        for (int i = 0; i < 2; i++) {
                expect("return { require 'shell', require 'empty' }", "[2,true]");
                expect("return select(2, pcall(require, 'binary')).message",
                       "\"the module `binary` failed to load: attempt to load a binary chunk (mode is 't')\"");
        }
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(what_others_may_write_is_refused) {
        char path[256];

        lua_fixture_init(&fixture, 0);
        lua_fixture_module(&fixture, "open", "return 1");
        path_of(path, sizeof(path), "open.lua");
        ck_assert_int_eq(chmod(path, 0666), 0);
        expect("return select(2, pcall(require, 'open')).message",
               "\"the module `open` is not loaded: others than root and the daemon's own user may write open.lua\"");
        ck_assert_int_eq(chmod(path, 0664), 0);
        expect("return select(2, pcall(require, 'open')).code", "\"load\"");
        ck_assert_int_eq(chmod(path, 0644), 0);
        expect("return require 'open'", "1");
        ck_assert_int_eq(chmod(fixture.directory, 0777), 0);
        snprintf(path, sizeof(path),
                 "load/no: the module `open` is not loaded: others than root and the daemon's own user may write %s",
                 fixture.directory);
        check_load("open", "return 1", path);
        ck_assert_int_eq(chmod(fixture.directory, 0700), 0);
        lua_fixture_deinit(&fixture);
}
END_TEST

/* Neither a folder nor what never ends. */
START_TEST(only_files_are_read) {
        char path[256];

        lua_fixture_init(&fixture, 0);
        path_of(path, sizeof(path), "pipe.lua");
        ck_assert_int_eq(mkfifo(path, 0600), 0);
        expect("return select(2, pcall(require, 'pipe')).code", "\"not-found\"");
        unlink(path);
        path_of(path, sizeof(path), "folder.lua");
        ck_assert_int_eq(mkdir(path, 0700), 0);
        expect("return select(2, pcall(require, 'folder')).code", "\"not-found\"");
        rmdir(path);
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(code_is_read_at_every_start) {
        struct tr_target *target;

        lua_fixture_init(&fixture, 0);
        for (int i = 1; i <= 3; i++) {
                char text[128], expected[8];

                snprintf(text, sizeof(text), "local A = troupe.actor 'A' function A.on:version() return %d end", i);
                snprintf(expected, sizeof(expected), "%d", i);
                lua_fixture_module(&fixture, "m", text);
                target = lua_fixture_spawn(&fixture, "m", NULL);
                ck_assert_answer(&fixture, target, "version", expected);
                tr_target_unref(target);
        }
        lua_fixture_deinit(&fixture);
}
END_TEST

/* Each VM loads them; the first one compiles. */
START_TEST(what_was_compiled_before_is_the_same) {
        static const char text[] = "local M = {}\nlocal function inner(given)\n  return given.field.of\nend\n"
                                   "function M.outer(...) return inner(...) end\nreturn M";

        lua_fixture_init(&fixture, 0);
        lua_fixture_module(&fixture, "one", text);
        lua_fixture_module(&fixture, "two", text);
        for (int i = 0; i < 2; i++)
                expect("local function tell(name)\n"
                       "  local M, lines = require(name), {}\n"
                       "  local _, trace = xpcall(M.outer, debug.traceback, {})\n"
                       "  for line in trace:gmatch '[^/\\n]+' do if line:match '^one' or line:match '^two' then "
                       "lines[#lines + 1] = line end end\n"
                       "  local of = debug.getinfo(M.outer, 'Su')\n"
                       "  return { lines, of.source:match '^@.*/([^/]*)$', of.linedefined, of.lastlinedefined, "
                       "of.isvararg, of.nups }\n"
                       "end\n"
                       "return { tell 'one', tell 'two' }",
                       "[[[\"one.lua:3: attempt to index a nil value (field 'field')\",\"one.lua:3: in function "
                       "<\",\"one.lua:2>\"],"
                       "\"one.lua\",5,5,true,1],"
                       "[[\"two.lua:3: attempt to index a nil value (field 'field')\",\"two.lua:3: in function "
                       "<\",\"two.lua:2>\"],"
                       "\"two.lua\",5,5,true,1]]");
        lua_fixture_deinit(&fixture);
}
END_TEST

/* Files of all sizes, and what changes at their end, where one piece of a file does not reach. */
START_TEST(large_files_are_read_whole) {
        lua_fixture_init(&fixture, 0);
        for (int size = 100; size < 1 << 20; size *= 7)
                for (int version = 1; version <= 3; version++) {
                        char *text = NULL, expected[32];

                        ck_assert_int_ge(asprintf(&text, "--[[%*s]]\nreturn { %d, debug.getinfo(1, 'l').currentline }",
                                                  size, "", (version + 1) / 2),
                                         0);
                        snprintf(expected, sizeof(expected), "[%d,2]", (version + 1) / 2);
                        lua_fixture_module(&fixture, "large", text);
                        expect("return require 'large'", expected);
                        free(text);
                }
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(nothing_is_started_or_reached_at_the_top_level) {
        lua_fixture_init(&fixture, 0);
        check_load("spawns", "local A = troupe.actor 'A' troupe.spawn(A)",
                   "load/no: the module `spawns` failed to load: spawn: not at the top level of a file (spawns.lua): "
                   "every VM that loads it "
                   "would do it again, without end");
        check_load("sends", "troupe.send(troupe.me(), 'x')",
                   "load/no: the module `sends` failed to load: send: not at the top level of a file (sends.lua): "
                   "every VM that loads it "
                   "would do it again, without end");
        /* before anything else is looked at */
        check_load("misuses", "troupe.send('x', 5)",
                   "load/no: the module `misuses` failed to load: send: not at the top level of a file (misuses.lua): "
                   "every VM that loads it would do it again, without end");
        check_load("starts", "troupe.spawn(42)",
                   "load/no: the module `starts` failed to load: spawn: not at the top level of a file (starts.lua): "
                   "every VM that loads it would do it again, without end");
        check_load("supervises", "troupe.supervise(42)",
                   "load/no: the module `supervises` failed to load: supervise: not at the top level of a file "
                   "(supervises.lua): every VM that loads it would do it again, without end");
        check_load("asks", "coroutine.wrap(function() troupe.ask(troupe.me(), 'x') end)()",
                   "load/no: the module `asks` failed to load: ask: not at the top level of a file (asks.lua): every "
                   "VM that loads it "
                   "would do it again, without end");
        lua_fixture_module(&fixture, "late", "return { send = function() troupe.send(troupe.me(), 'x') end }");
        expect("require 'late'.send() return 1", "1");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(main_is_ignored_in_an_actor) {
        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture, "troupe.main(function() error 'never' end)", "return 1", "1");
        expect("troupe.main(print)", "fault(error)/yes: main: stands at the top level of a file");
        lua_fixture_deinit(&fixture);
}
END_TEST

suite_main("module", a_module_runs_once_per_vm, dots_are_folders, what_is_not_there_names_what_was_tried,
           one_that_fails_may_be_tried_again, what_a_failed_module_declared_is_nothing,
           what_a_module_declares_it_declares_once, what_does_not_load_says_why,
           the_beginning_of_a_file_is_not_always_lua, what_others_may_write_is_refused, only_files_are_read,
           code_is_read_at_every_start, what_was_compiled_before_is_the_same, large_files_are_read_whole,
           nothing_is_started_or_reached_at_the_top_level, main_is_ignored_in_an_actor);
