-- SPDX-License-Identifier: Apache-2.0
-- What may not cross: values that are refused before they are sent, and bytes that are refused when they arrive. Each
-- function runs in a VM of its own, with the globals of tests/unit/fake_vm.h.
local test = tests()

local forms = { "internal", "typed", "plain" }

-- Encoding the arguments is refused in each form: `kind` at `path`.
local function carries(kind, path, ...)
  local message = ("a message may not carry %s: `%s` is %s"):format(kind, path, kind)
  for _, form in ipairs(forms) do refused("not-sendable", path, message, encode, form, ...) end
end

-- Bytes of a peer are refused.
local function arrives(path, message, text, count)
  refused("not-sendable", path, message, decode, "typed", unhex(text), count)
end

function test.the_sentence_of_the_guide()
  refused("not-sendable", "handlers.onDone", "a message may not carry a function: `handlers.onDone` is a function",
          encode, "internal", { handlers = { onDone = print } })
end

function test.kinds_that_may_not_cross()
  carries("a function", "f", { f = function() end })
  carries("a coroutine", "f", { f = coroutine.create(print) })
  carries("a promise", "f", { f = setmetatable({ is_promise = true }, {}) })
  carries("an actor declaration", "f", { f = setmetatable({ is_declaration = true }, {}) })
  carries("a file", "f", { f = io.stdout })
  carries("a weak table", "f", { f = setmetatable({}, { __mode = "k" }) })
  carries("a table with a metatable", "f", { f = setmetatable({}, {}) })
  carries("a class", "f", { f = Point })
  Point.__mode = "v"
  carries("a weak table", "f", { f = Point.new() })
end

function test.fields_are_named()
  carries("a function", "argument 1", print)
  carries("a function", "argument 2", 1, print)
  carries("a function", "argument 3", {}, nil, print)
  carries("a function", "argument 2.x", 1, { x = print })
  carries("a function", "argument 2[1]", 1, { print })
  carries("a function", "items[3]", { items = { 1, 2, print } })
  carries("a function", "[3][1].x", { 1, 2, { { x = print } } })
  carries("a function", "x.y", Point.new({ y = print }))
  carries("a function", "[true]", { [true] = print })
  carries("a function", "[1.5]", { [1.5] = print })
  carries("a function", "[-7]", { [-7] = print })
  carries("a function", '["a b"].c', { ["a b"] = { c = print } })
  carries("a function", '["1a"]', { ["1a"] = print })
  carries("a function", '["\\"\\\\\\010"]', { ['"\\\n'] = print })
  carries("a function", '["gr\u{fc}n"]', { ["gr\u{fc}n"] = print })
  carries("a function", '["\\255"]', { ["\255"] = print })
  carries("a function", '["' .. ("k"):rep(40) .. '..."]', { [("k"):rep(50)] = print })
end

function test.long_paths_are_cut_off()
  local value = { print }
  for _ = 1, 100 do value = { ["gr\u{fc}n"] = value } end
  local ok, e = pcall(encode, "typed", value)
  assert(not ok and #e.path <= 203 and e.path:sub(-3) == "..." and utf8.len(e.path))
  assert(e.message == "a message may not carry a function: `" .. e.path .. "` is a function")
end

function test.keys_of_another_kind()
  for _, form in ipairs(forms) do
    refused("not-sendable", "argument 1", "a message may not carry a table as a key: `argument 1` has one",
            encode, form, { [{}] = 1 })
    refused("not-sendable", "a.b", "a message may not carry a function as a key: `a.b` has one",
            encode, form, { a = { b = { [print] = 1 } } })
    refused("not-sendable", "argument 2[1]", "a message may not carry null as a key: `argument 2[1]` has one",
            encode, form, 1, { { [null] = 1 } })
    refused("not-sendable", "a", "a message may not carry a handle as a key: `a` has one",
            encode, form, { a = { [actor "x"] = 1 } })
  end
end

-- A plain map's keys are text: two of them may be one then.
function test.keys_that_are_the_same_as_text()
  for _, t in ipairs { { [1] = "a", ["1"] = "b" }, { [1.5] = 1, ["1.5"] = 2 }, { [true] = 1, ["true"] = 2 } } do
    local key = next(t)
    if type(key) == "string" then key = next(t, key) end
    for _, case in ipairs { { ("[%s]"):format(key), t }, { ("x[%s]"):format(key), { x = t } } } do
      refused("not-sendable", case[1], ("a message may not carry a map with a key twice: as a text `%s` is there before"):format(case[1]),
              encode, "plain", case[2])
    end
    for _, form in ipairs { "internal", "typed" } do
      local back = cross(form, t)
      for k, v in pairs(t) do assert(back[k] == v) end
    end
  end
end

function test.what_a_class_holds_is_not_what_is_wrong_with_it()
  carries("a class", "deep.C", { deep = { C = Point } })
end

function test.cycles_towards_a_peer()
  local t = { list = { {} } }
  t.list[1].up = t
  for _, form in ipairs { "typed", "plain" } do
    refused("not-sendable", "list[1].up", "a message may not carry a cycle: `list[1].up` is a cycle", encode, form, t)
    refused("not-sendable", "argument 2.x.list[1].up",
            "a message may not carry a cycle: `argument 2.x.list[1].up` is a cycle", encode, form, 1, { x = t })
  end
end

function test.nesting_beyond_128_levels()
  local path = ("[1]"):rep(66) .. "[1"
  local message = "a message may not be nested deeper than 128 levels: `" .. path .. "...` is"
  for _, form in ipairs(forms) do refused("not-sendable", path .. "...", message, encode, form, nested(129)) end
  refused("not-sendable", path .. "...", message, decode, "typed", ("\x91"):rep(128) .. "\x90")
  refused("not-sendable", path .. "...", message, decode, "internal", ("\x91"):rep(128) .. "\x90")
end

function test.more_than_a_message_may_have()
  -- 2^52 bytes where it is written out, few between VMs
  local value = { ("x"):rep(4096) }
  for _ = 1, 40 do value = { value, value } end
  for _, form in ipairs { "typed", "plain" } do
    local ok, e = pcall(encode, form, value)
    assert(not ok and e.code == "too-large", e)
  end
  assert(#encode("internal", value) < 5000)
  -- strings are written out everywhere
  local long, many = ("x"):rep(1 << 20), {}
  for i = 1, 65 do many[i] = long end
  for _, form in ipairs(forms) do
    local ok, e = pcall(encode, form, many)
    assert(not ok and e.code == "too-large", e)
  end
end

function test.bytes_that_are_no_values()
  for _, text in ipairs { "", "c1", "91", "8101", "a261", "c4", "9191", "d401", "dd7fffffff", "df7fffffff00" } do
    local ok, e = pcall(decode, "typed", unhex(text))
    assert(not ok and (e.code == "not-sendable" or e.code == "too-large"), text)
  end
  local ok, e = pcall(decode, "typed", "\1\2", 1)
  assert(not ok and e.code == "not-sendable")
  ok, e = pcall(decode, "typed", ("\xc0"):rep(1100000), 1100000)
  assert(not ok and e.code == "too-large")
end

function test.peers_maps_with_impossible_keys()
  arrives("a", "a message may not carry a map with a key twice: `a` is there before", "82a16101a16102")
  arrives("x[1]", "a message may not carry a map with a key twice: `x[1]` is there before",
          "81a178820101cb3ff000000000000002")
  arrives("a", "a message may not carry a map with a key twice: `a` is there before", "82a16101c4016102")
  arrives("argument 2", "a message may not carry a map with a nil key: `argument 2` has one", "0181c001", 2)
  arrives("x", "a message may not carry a map with a nil key: `x` has one", "81a17881c001")
  for _, key in ipairs { "90", "80", "cb7ff8000000000000", "cfffffffffffffffff", "d6ff00000000" } do
    arrives("argument 1",
            "a message may not carry a map with a key that is no string, number or boolean: `argument 1` has one",
            "81" .. key .. "01")
  end
end

function test.peers_values_that_lua_has_not()
  arrives("[1]", "a message may not carry an integer above 2^63-1: `[1]` is one", "91cf8000000000000000")
  arrives("argument 1", "a message may not carry an extension of an unknown type: `argument 1` is of type 5", "d40500")
  arrives("[2]", "a message may not carry an extension of an unknown type: `[2]` is of type -7", "9201d4f900")
  -- what only VMs may say
  for type = 64, 70 do
    arrives("argument 1", "a message may not carry an extension of an unknown type: `argument 1` is of type " .. type,
            ("d4%02x00"):format(type))
  end
end

function test.peers_extensions_that_are_malformed()
  for _, text in ipairs { "d40100", "d40200", "d40300", "d4ff00", "c70d0292c40b" .. ("00"):rep(10), "c7040392a16180",
                          "d7ffffffffff00000000" } do
    local ok, e = pcall(decode, "typed", unhex(text))
    assert(not ok and e.code == "not-sendable", text)
  end
end

function test.peers_instances_of_classes_that_are_not_loaded()
  local bytes = encode("typed", { p = Point.new(1) })
  forget "shape"
  modules = { shape = function() error "loaded for a peer" end }
  refused("not-sendable", "p", "`p` is an instance of shape:Point, a class that is not loaded here",
          decode, "typed", bytes)
end

function test.instances_whose_module_does_not_declare_them()
  local bytes = encode("internal", Point.new(1))
  forget "shape"
  modules = { shape = function() end }
  refused("not-sendable", "argument 1",
          "`argument 1` is an instance of shape:Point, which that module does not declare", decode, "internal", bytes)
  modules = {}
  local ok, e = pcall(decode, "internal", bytes)
  assert(not ok and e.code == "not-found")
end

function test.instances_that_would_be_finalized()
  local typed, internal = encode("typed", { p = Point.new(1) }), encode("internal", { p = Point.new(1) })
  Point.__gc = false
  local message = "`p` is an instance of a class with a __gc metamethod, which is refused"
  refused("not-sendable", "p", message, decode, "typed", typed)
  refused("not-sendable", "p", message, decode, "internal", internal)
end

return test
