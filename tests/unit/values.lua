-- SPDX-License-Identifier: Apache-2.0
-- The value types as Lua code sees them. Each function runs in a VM of its own, with the globals of
-- tests/unit/fake_vm.h.
local test = tests()

function test.null_is_a_light_value()
  local null = troupe.null
  assert(null and null == troupe.null and type(null) == 'userdata')
  assert(tostring(null) == 'null' and string.format('%s', null) == 'null')
  assert(not getmetatable(null))
  assert(({[null] = 1})[null] == 1)
end

function test.marks_leave_a_table_as_it_is()
  local t = {1, 2, x = 3}
  assert(troupe.map(t) == t and troupe.array(t) == t)
  assert(#t == 2 and t.x == 3 and tostring(t):find('^table: '))
  assert(not getmetatable(t))
  assert(fault('map: 42 is not a table', troupe.map, 42) == 'bad-request')
  fault('array: "x" is not a table', troupe.array, 'x')
  fault('array: nil is not a table', troupe.array)
  fault('is not a table without a metatable', troupe.map, setmetatable({}, {}))
end

function test.one_handle_is_one_object()
  local a, b = actor 'counter', actor 'counter'
  assert(a ~= b and a == troupe.handle(troupe.text(a)))
  assert(({[a] = 1})[troupe.handle(troupe.text(a))] == 1)
  assert(troupe.text(a):find('^actor:%x+$') and #troupe.text(a) == 38)
  local digits = troupe.text(a):sub(7, 14)
  assert(tostring(a) == 'counter ' .. digits, tostring(a))
  assert(not tostring(a):find(troupe.text(a):sub(7), 1, true))
  assert(not getmetatable(a) and type(a) == 'userdata')
  fault('nothing can be set', function() a.x = 1 end)
  fault('42 is not the name of a handler', function() return a[42] end)
  fault('text: 42 is not a handle', troupe.text, 42)
  fault('is not the text of a handle', troupe.handle, 'actor:12')
  fault('is not the text of a handle', troupe.handle, 7)
end

function test.an_unknown_handle_is_a_value()
  local text = 'pool:ff000000000000000000000000000001'
  local h = troupe.handle(text)
  assert(h == troupe.handle(text) and troupe.text(h) == text)
  assert(tostring(h) == 'pool ff000000')
end

function test.reading_a_handle_makes_messages()
  local c = actor 'counter'
  local m = c.total
  assert(m == c.total and m ~= c.bump and c.stop and c.__gc and c[''])
  assert(({[m] = 1})[c.total] == 1)
  local digits = troupe.text(c):sub(7, 14)
  assert(tostring(m) == 'counter.total ' .. digits, tostring(m))
  assert(not getmetatable(m))
  fault('nothing on it', function() return m.x end)
  fault('nothing on it', function() m.x = 1 end)
  fault('at most 65535 bytes', function() return c[('x'):rep(65536)] end)
  local text = tostring(m); m = nil; collectgarbage()
  assert(tostring(c.total) == text)
end

function test.calling_a_message_says_what_to_write()
  local c = actor 'counter'
  assert(fault('troupe.ask(c.total)', function() c.total() end) == 'fault')
  local function f(other) other.add(1) end
  fault('troupe.ask(other.add)', f, c)
  local t = {c}
  c = nil
  fault('troupe.ask(c.total)', function() t[1].total(1, 2) end)
  fault('troupe.ask(c.total)', t[1].total)
end

function test.bytes_read_and_write()
  local b = troupe.bytes(3)
  assert(#b == 3 and b[1] == 0 and b[3] == 0 and b[0] == nil and b[4] == nil and b[-1] == nil)
  assert(b[1.0] == 0 and b[1.5] == nil and b.nothing == nil)
  b[1] = 255; b[2] = 1.0
  assert(tostring(b) == '\255\1\0')
  fault('4 is not a place in a buffer of 3 bytes', function() b[4] = 1 end)
  fault('0 is not a place', function() b[0] = 1 end)
  fault('256 is not a byte', function() b[1] = 256 end)
  fault('-1 is not a byte', function() b[1] = -1 end)
  fault('"a" is not a byte', function() b[1] = 'a' end)
  assert(troupe.bytes 'abc' == troupe.bytes 'abc' and troupe.bytes 'abc' ~= troupe.bytes 'abd')
  assert(troupe.bytes 'abc' ~= 'abc' and troupe.bytes 'abc' ~= troupe.timestamp(1))
  assert(troupe.bytes(0) == troupe.bytes '' and #troupe.bytes(0) == 0 and tostring(troupe.bytes '') == '')
  assert(not getmetatable(b))
  local copy = troupe.bytes(b); copy[1] = 7; assert(b[1] == 255)
  fault('bytes: -1 is not', troupe.bytes, -1)
  fault('bytes: nil is not', troupe.bytes)
  fault('bytes: 1.5 is not', troupe.bytes, 1.5)
end

function test.bytes_have_parts()
  local b = troupe.bytes 'hello'
  for _, at in ipairs {{1, 5}, {2, 3}, {-3, -1}, {-3, -2}, {0, 2}, {4, 2}, {-9, 9}, {6, 9}, {5, 5}, {1, 0},
                       {math.mininteger, math.maxinteger}, {3}, {}} do
    local i, j = at[1], at[2]
    local want = ('hello'):sub(i or 1, j)
    assert(b:string(i, j) == want)
    assert(tostring(b:sub(i, j)) == want)
  end
  local part = b:sub(2, 3); part[1] = 65; assert(tostring(b) == 'hello')
  fault('bytes.sub: "1" is not an integer', b.sub, b, '1')
  fault('bytes.string: 1.5 is not an integer', b.string, b, 1.5)
  fault('bytes.sub: 5 is not a byte buffer', b.sub, 5)
end

function test.bytes_grow()
  local b = troupe.bytes ''
  assert(b:append('ab') == b and b:append(troupe.bytes 'cd') == b)
  b:append(101):append(b)
  assert(tostring(b) == 'abcdeabcde')
  for i = 1, 10000 do b:append(i % 256) end
  assert(#b == 10010 and b[10010] == 10000 % 256)
  b:append(''):append(troupe.bytes(0)); assert(#b == 10010)
  fault('bytes.append: nil is not', b.append, b)
  fault('bytes.append: 256 is not a byte', b.append, b, 256)
  fault('bytes.append: a table is not', b.append, b, {})
end

function test.timestamps_are_ordered()
  local a, b = troupe.timestamp(5, 7), troupe.timestamp(5, 8)
  assert(a.sec == 5 and a.nsec == 7 and troupe.timestamp(5).nsec == 0 and a.x == nil)
  assert(a < b and a <= b and b > a and a == troupe.timestamp(5, 7) and a ~= b)
  assert(troupe.timestamp(-1, 9) < a and not (a < a) and a <= a)
  assert(tostring(troupe.timestamp(0, 500000000)) == '1970-01-01T00:00:00.5Z')
  assert(a ~= troupe.null and a ~= troupe.bytes 'x')
  fault('5 is not a timestamp', function() return a < 5 end)
  fault('nothing can be set', function() a.sec = 1 end)
  fault('timestamp: nil is not an integer', troupe.timestamp)
  fault('timestamp: 1.5 is not an integer', troupe.timestamp, 1.5)
  fault('timestamp: 1000000000 is not', troupe.timestamp, 0, 1000000000)
  fault('timestamp: -1 is not', troupe.timestamp, 0, -1)
end

function test.classes_make_instances()
  function Point:sum() return self.x + self.y end
  local p = Point.new(3, 4)
  assert(p:sum() == 7 and getmetatable(p) == Point and Point.new(3).y == nil)
  assert(troupe.is(p, Point) and not troupe.is({}, Point) and not troupe.is(nil, Point))
  loading 'shape'
  local Other = troupe.class 'Other'
  assert(not troupe.is(p, Other) and next(Other.new()) == nil)
  function Other:init(...) self.n = select('#', ...); coroutine.yield(self) end
  local co = coroutine.wrap(function() return Other.new(1, nil, nil) end)
  local made = co(); assert(made.n == 3 and co() == made)
  fault('is: 5 is not a class', troupe.is, p, 5)
  fault('shape:Point: init takes 2 arguments, and was given 3', Point.new, 1, 2, 3)
  local None = troupe.class 'None'
  fault('shape:None: without init', None.new, 1)
end

function test.classes_refuse_finalizers()
  loading 'shape'
  local A, B = troupe.class 'A', troupe.class 'B'
  function A:__gc() end
  fault('shape:A: a class may not have a __gc', A.new)
  B.__gc = false
  fault('shape:B: a class may not have a __gc', B.new)
end

function test.classes_are_declared_once_at_a_top_level()
  fault('Other is not declared at the top level', troupe.class, 'Other')
  loading 'shape'
  fault('shape:Point is declared already', troupe.class, 'Point')
  fault('is not the name of a class', troupe.class, 'a b')
  fault('is not the name of a class', troupe.class, 7)
  loading 'shape.more'
  assert(troupe.class 'Point' ~= Point)
end

return test
