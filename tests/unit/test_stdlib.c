/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/lua_fixture.h"
/* on a machine that is busy, with a sanitizer */
#define SUITE_TIMEOUT_S 120
#include "tests/unit/suite.h"

/* The standard library, less what would harm the process. */

static struct lua_fixture fixture;

static void expect(const char *body, const char *expected) {
        lua_expect(&fixture, "", body, expected);
}

START_TEST(an_unknown_global_is_named) {
        lua_fixture_init(&fixture, 0);
        expect("return select(2, pcall(function() return limit end))",
               "\"m.lua:4: the global `limit` was never set: values set in main exist in the program alone and belong "
               "in a module or in "
               "the actor's fields\"");
        expect("return (pcall(function() return _G.limit end))", "false");
        expect("return rawget(_G, 'limit')", "null");
        expect("limit = 1 return limit", "1");
        expect("return { unpack == nil, loadstring == nil, setfenv == nil, getfenv == nil, module == nil, jit == nil, "
               "bit == nil, bit32 == "
               "nil }",
               "[true,true,true,true,true,true,true,true]");
        expect("return (pcall(setmetatable, _G, nil))", "false");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(no_metatable_has_a_finalizer) {
        lua_fixture_init(&fixture, TR_ALLOW_FILES);
        expect("return select(2, pcall(setmetatable, {}, { __gc = function() end }))",
               "\"a metatable with `__gc` is refused: finalizers cannot be interrupted (`__close` works)\"");
        expect("return (pcall(setmetatable, {}, { __gc = false }))", "false");
        expect("local mt = {} local t = setmetatable({}, mt) mt.__gc = print return (pcall(setmetatable, {}, mt))",
               "false");
        expect("return (pcall(function() getmetatable(io.stdout).__gc = print end))", "false");
        expect("return (pcall(function() getmetatable(troupe.me()).__gc = print end))", "false");
        expect("return (pcall(function() getmetatable(troupe.sleep(1)).__gc = print end))", "false");
        expect("return (pcall(function() getmetatable(troupe.bytes(1)).__gc = print end))", "false");
        expect("return (pcall(function() getmetatable(select(2, pcall(troupe.await))).__gc = print end))", "false");
        expect("local n = 0 do local c <close> = setmetatable({}, { __close = function() n = n + 1 end }) end return n",
               "1");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(metatables_are_otherwise_as_ever) {
        lua_fixture_init(&fixture, 0);
        expect("local mt = { __index = { x = 1 } } local t = setmetatable({}, mt) return { t.x, getmetatable(t) == mt "
               "}",
               "[1,true]");
        expect("return getmetatable(setmetatable({}, { __metatable = 'hidden' }))", "\"hidden\"");
        expect("return select(2, pcall(setmetatable, setmetatable({}, { __metatable = 'hidden' }), {}))",
               "\"cannot change a protected metatable\"");
        expect("return select(2, pcall(setmetatable, {}, 1))",
               "\"bad argument #2 to 'setmetatable' (nil or table expected, got number)\"");
        expect("return getmetatable(troupe.array {}) == nil", "true");
        expect("return getmetatable('').__index == string", "true");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(only_text_is_compiled) {
        lua_fixture_init(&fixture, TR_ALLOW_FILES);
        expect("return string.dump", "null");
        expect("return { load 'return 1' (), load('return x', 'chunk', 't', { x = 2 })() }", "[1,2]");
        expect("return select(2, load '\\27Lua')", "\"attempt to load a binary chunk (mode is 't')\"");
        expect("return select(2, load('\\27Lua', 'x', 'b'))", "\"only text chunks are loaded\"");
        expect("return select(2, load('\\27Lua', 'x', 'bt'))", "\"attempt to load a binary chunk (mode is 't')\"");
        expect("local name = os.tmpname() local f = io.open(name, 'w') f:write('\\27Lua') f:close()\n"
               "local ok, e = pcall(dofile, name) local f, e2 = loadfile(name) os.remove(name)\n"
               "return { ok, f == nil, e:match 'binary', e2:match 'binary' }",
               "[false,true,\"binary\",\"binary\"]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(files_run_as_ever) {
        lua_fixture_init(&fixture, TR_ALLOW_FILES);
        expect("local name = os.tmpname() local f = io.open(name, 'w') f:write('return ...') f:close()\n"
               "local a = loadfile(name)(7)\n"
               "f = io.open(name, 'w') f:write('return x, 2') f:close()\n"
               "local b = loadfile(name, 't', { x = 8 })()\n"
               "x = 9 local c, d = dofile(name) os.remove(name)\n"
               "return { a, b, c, d }",
               "[7,8,9,2]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(debug_is_two_functions) {
        lua_fixture_init(&fixture, 0);
        expect("local t = {} for name in pairs(debug) do t[#t + 1] = name end table.sort(t) return t",
               "[\"getinfo\",\"traceback\"]");
        expect("return package.loaded.debug == debug", "true");
        expect("return require 'debug' == debug", "true");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(what_is_the_processs_is_refused) {
        lua_fixture_init(&fixture, TR_ALLOW_FILES | TR_ALLOW_COMMANDS);
        expect("local ok, e = pcall(os.exit, 0) return { ok, e.code, e.message }",
               "[false,\"denied\",\"os.exit would end the whole daemon: use troupe.stop(troupe.me()) in an actor, and "
               "return from main in a "
               "program\"]");
        expect("return select(2, pcall(os.setlocale, 'C')).code", "\"denied\"");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(what_is_not_granted_says_how_to_grant_it) {
        lua_fixture_init(&fixture, 0);
        expect("io.open('/etc/passwd')",
               "fault(error)/yes: io.open is not granted: it needs \"files\" in the configuration's \"allow\"");
        expect("local t = {} for i, f in ipairs { io.open, io.lines, io.input, io.output, io.tmpfile, os.remove, "
               "os.rename, os.tmpname,\n"
               "  loadfile, dofile } do local ok, e = pcall(f, '/dev/null') t[i] = not ok and e.code end return t",
               "[\"denied\",\"denied\",\"denied\",\"denied\",\"denied\",\"denied\",\"denied\",\"denied\",\"denied\","
               "\"denied\"]");
        expect("os.execute('true')",
               "fault(error)/yes: os.execute is not granted: it needs \"commands\" in the configuration's \"allow\"");
        expect("return select(2, pcall(io.popen, 'true')).code", "\"denied\"");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(commands_are_run_where_granted) {
        lua_fixture_init(&fixture, TR_ALLOW_COMMANDS);
        expect("return { os.execute() }", "[true]");
        expect("return { select(2, os.execute('exit 3')) }", "[\"exit\",3]");
        expect("return { select(2, os.execute('kill -9 $$')) }", "[\"signal\",9]");
        expect("local f = io.popen('printf out') local s = f:read('a') return { s, f:close() }",
               "[\"out\",true,\"exit\",0]");
        expect("local f = io.popen('cat >/dev/null; exit 4', 'w') f:write('x') return { select(2, f:close()) }",
               "[\"exit\",4]");
        expect("return (pcall(io.popen, 'true', 'rw'))", "false");
        /* left open, it is closed with the VM, and the command does not keep that */
        expect("leak = io.popen('sleep 1000') return 1", "1");
        lua_fixture_deinit(&fixture);
}
END_TEST

/* Each would run for days inside one C function. */
START_TEST(ranges_that_no_heap_holds_are_errors) {
        lua_fixture_init(&fixture, 0);
        expect("return (pcall(string.rep, '', 1 << 60))", "false");
        expect("return (pcall(string.rep, 'x', 1 << 40))", "fault(heap)/yes: the heap ceiling of 64M was reached");
        expect("return (pcall(string.rep, '', 1 << 60, ''))", "false");
        expect("return (pcall(table.move, {}, 1, 1 << 40, 2))", "false");
        expect("return (pcall(table.move, {}, math.mininteger, math.maxinteger, 2))", "false");
        expect("return (pcall(table.concat, setmetatable({}, { __index = table.concat }), '', 1, 1 << 60))", "false");
        expect("local huge = setmetatable({}, { __len = function() return 1 << 60 end })\n"
               "return { pcall(table.insert, huge, 1, 1) == false, pcall(table.remove, huge, 1) == false, "
               "pcall(table.concat, huge) == false,\n"
               "  pcall(table.sort, huge, rawequal) == false, pcall(table.unpack, huge) == false }",
               "[true,true,true,true,true]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(within_bounds_they_are_as_ever) {
        lua_fixture_init(&fixture, 0);
        expect("return { ('ab'):rep(3, '-'), ('x'):rep(0), ('x'):rep(-1), (''):rep(5) }",
               "[\"ab-ab-ab\",\"\",\"\",\"\"]");
        expect("return { table.concat({ 1, 2, 3 }, ','), table.concat({ 1, 2, 3 }, ',', 2), table.concat({ 1, 2, 3 }, "
               "'', 2, 2), "
               "table.concat({}) }",
               "[\"1,2,3\",\"2,3\",\"2\",\"\"]");
        expect("return table.move({ 1, 2, 3 }, 1, 3, 2)", "[1,1,2,3]");
        expect("local t = { 1, 3 } table.insert(t, 4) table.insert(t, 2, 2) return { t, table.remove(t), "
               "table.remove(t, 1), table.remove({}) }",
               "[[2,3],4,1]");
        expect("return select(2, pcall(table.insert, { 1 }, 5, 1))",
               "\"bad argument #2 to 'table.insert' (position out of bounds)\"");
        expect("local t = { 3, 1, 2 } table.sort(t) table.sort(t, function(a, b) return a > b end) return t",
               "[3,2,1]");
        expect("return select(2, pcall(table.concat, { 1, {} }))",
               "\"invalid value (table) at index 2 in table for 'concat'\"");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(xpcall_is_as_ever) {
        lua_fixture_init(&fixture, 0);
        expect("return { xpcall(function(...) return ... end, print, 1, 2) }", "[true,1,2]");
        expect("return { xpcall(error, function(e) return 'handled ' .. e end, 'x') }", "[false,\"handled x\"]");
        expect("return { xpcall(function() troupe.await(troupe.sleep(1)) error('x', 0) end, function(e) return "
               "'handled ' .. e end) }",
               "[false,\"handled x\"]");
        expect("return select(2, xpcall(error, debug.traceback, 'x')):match 'stack traceback'", "\"stack traceback\"");
        lua_fixture_deinit(&fixture);
}
END_TEST

suite_main("stdlib", an_unknown_global_is_named, no_metatable_has_a_finalizer, metatables_are_otherwise_as_ever,
           only_text_is_compiled, files_run_as_ever, debug_is_two_functions, what_is_the_processs_is_refused,
           what_is_not_granted_says_how_to_grant_it, commands_are_run_where_granted,
           ranges_that_no_heap_holds_are_errors, within_bounds_they_are_as_ever, xpcall_is_as_ever);
