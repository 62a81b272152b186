-- SPDX-License-Identifier: Apache-2.0
-- What crosses, and how it arrives: values to bytes and back, in each form. Each function runs in a VM of its own, with
-- the globals of tests/unit/fake_vm.h.
local test = tests()

function test.scalars_arrive_as_themselves()
  for _, form in ipairs {'internal', 'typed', 'plain'} do
    for _, n in ipairs {0, 1, -1, 31, 32, 127, 128, 255, 256, 65535, 65536, -32, -33, -128, -129, -32768, -32769,
                        2^31|0, -2^31|0, 2^32|0, math.maxinteger, math.mininteger, 0.0, -0.0, 1.0, 1.5, 2^53, 1e300,
                        math.huge, -math.huge, 5e-324} do
      assert(same(n, cross(form, n)), n)
      assert(same(n, cross(form, {n})[1]), n)
    end
    local nan = cross(form, 0/0); assert(nan ~= nan)
    for _, n in ipairs {0, 1, 31, 32, 255, 256, 65535, 65536} do
      assert(cross(form, ('x'):rep(n)) == ('x'):rep(n))
    end
    assert(cross(form, 'gr\u{f6}\u{df}e') == 'gr\u{f6}\u{df}e')
    assert(cross(form, true) == true and cross(form, false) == false)
    local a, b, c = cross(form, nil, 7, nil); assert(a == nil and b == 7 and c == nil)
    assert(select('#', cross(form)) == 0)
  end
  assert(cross('internal', '\0\255\128') == '\0\255\128')
end

function test.null_is_kept_and_nil_is_nil()
  assert(cross('internal', null) == null and cross('internal', nil) == nil)
  assert(cross('typed', null) == nil and cross('plain', null) == nil)
  for _, form in ipairs {'internal', 'typed', 'plain'} do
    local t = cross(form, {null, {x = null}})
    assert(#t == 2 and t[1] == null and t[2].x == null)
  end
end

function test.arrays_and_maps_by_their_keys()
  for _, form in ipairs {'internal', 'typed'} do
    local t = cross(form, {1, {2, 3}, {}, 'x'})
    assert(#t == 4 and t[2][2] == 3 and #t[3] == 0 and next(t[3]) == nil and t[4] == 'x')
    t = cross(form, {a = 1, [2] = 'two', [1.5] = 'float', [true] = 't', [false] = 'f', [-1] = 'm', [''] = 'e'})
    assert(t.a == 1 and t[2] == 'two' and t[1.5] == 'float' and t[true] == 't' and t[false] == 'f')
    assert(t[-1] == 'm' and t[''] == 'e')
    t = cross(form, {1, nil, 3}); assert(t[1] == 1 and t[2] == nil and t[3] == 3)
    t = cross(form, {1, 2, x = 3}); assert(t[1] == 1 and t[2] == 2 and t.x == 3)
  end
  assert(hex(encode('typed', {})) == '90' and hex(encode('typed', {7})) == '9107')
  assert(hex(encode('typed', {a = 1})) == '81a16101')
  assert(hex(encode('typed', {[2] = 1})) == '810201' and hex(encode('plain', {[2] = 1})) == '81a13201')
  assert(hex(encode('plain', {[true] = 1})) == '81a47472756501')
  assert(hex(encode('plain', {[1.5] = 1})) == '81a3312e3501')
  -- built backwards, in the hash part, and beyond what one byte, two and four bytes count
  local t = {}; for i = 9, 1, -1 do t[i] = i end
  assert(hex(encode('typed', t)) == '99010203040506070809')
  assert(hex(encode('typed', {[1] = 1, [2] = 2})) == '920102')
  for _, n in ipairs {15, 16, 17, 65535, 65536} do
    for _, form in ipairs {'internal', 'typed'} do
      local array, map = {}, {}
      for i = 1, n do array[i] = i; map['k' .. i] = {i} end
      array = cross(form, array); map = cross(form, {map})[1]
      for i = 1, n do assert(array[i] == i and map['k' .. i][1] == i) end
      assert(#array == n)
      local count = 0; for _ in pairs(map) do count = count + 1 end; assert(count == n)
    end
  end
end

function test.marks_decide_and_are_kept()
  assert(hex(encode('plain', troupe.map {})) == '80' and hex(encode('plain', troupe.array {})) == '90')
  assert(hex(encode('typed', troupe.map {7, 8})) == '8201070208')
  assert(hex(encode('typed', troupe.array {1, [3] = 3})) == '9301c003')
  assert(hex(encode('typed', {troupe.map {}})) == '9180')
  -- what a table could not tell arrives marked, whoever sends it, and goes on as it came
  for _, bytes in ipairs { "80", "8101a161", "8201020203", "8201c002c0" } do
    bytes = unhex(bytes)
    assert(encode('typed', decode('typed', bytes)) == bytes)
    local again = cross('internal', cross('internal', decode('typed', bytes)))
    assert(encode('typed', again) == bytes)
  end
  local m = decode('typed', unhex '8101a161'); m[1] = nil; assert(hex(encode('typed', m)) == '80')
  -- the mark stays where contents change, in other VMs too
  m = cross('internal', troupe.map {x = 1}); m.x = nil; assert(hex(encode('typed', m)) == '80')
  m = cross('internal', troupe.array {1, 2}); m[1] = nil; assert(hex(encode('typed', m)) == '92c002')
  m = decode('typed', unhex '81a16101'); m.a = nil; assert(hex(encode('typed', m)) == '90')
  refused('not-sendable', 'x.list', 'a table marked as an array may not have other keys than 1 and up: `x.list` has',
          encode, 'typed', {x = {list = troupe.array {1, a = 2}}})
  local ok, e = pcall(encode, 'typed', troupe.array {[2^40|0] = 1}); assert(not ok and e.code == 'too-large')
end

function test.values_of_ours_are_kept()
  local h = actor 'counter'
  for _, form in ipairs {'internal', 'typed'} do
    local a, m, t, b = cross(form, h, h.total, troupe.timestamp(-5, 7), troupe.bytes 'a\0b')
    assert(a == h and m == h.total and t == troupe.timestamp(-5, 7) and b == troupe.bytes 'a\0b')
    local list = cross(form, {h, h.x, {deep = h}}); assert(list[1] == h and list[2] == h.x and list[3].deep == h)
  end
  local a, m, t, b, s = cross('plain', h, {h.total}, troupe.timestamp(0, 5), troupe.bytes 'x', '\255')
  assert(a == troupe.text(h) and m[1][1] == a and m[1][2] == 'total' and t == '1970-01-01T00:00:00.000000005Z')
  assert(b == troupe.bytes 'x' and s == troupe.bytes '\255')
  assert(hex(encode('typed', {['\255'] = 1})) == '81c401ff01')
  assert(cross('typed', {['\255'] = 1})['\255'] == 1)
  assert(#cross('internal', troupe.bytes(0)) == 0)
  for _, n in ipairs {1, 255, 256, 65536, 1048576} do
    local b = troupe.bytes(('\1\2\3'):rep(n // 3 + 1):sub(1, n)); assert(cross('internal', b) == b)
  end
end

function test.instances_cross_as_instances()
  for _, form in ipairs {'internal', 'typed'} do
    local p = cross(form, {Point.new(1, {Point.new(2, 3)})})[1]
    assert(troupe.is(p, Point) and p.x == 1 and troupe.is(p.y[1], Point) and p.y[1].y == 3)
    assert(troupe.is(cross(form, Point.new()), Point))
    local big = Point.new(); for i = 1, 300 do big['f' .. i] = ('v'):rep(300) end
    assert(cross(form, big).f300 == big.f300)
  end
  assert(hex(encode('plain', Point.new(1))) == '81a17801')
  assert(hex(encode('plain', Point.new())) == '80')
  -- no code of the class runs
  Point.init = function() error 'init ran' end; Point.__newindex = Point.init; Point.__index = Point.init
  local p = cross('internal', setmetatable({}, Point)); rawset(p, 'x', 5); p = cross('typed', p)
  assert(rawget(p, 'x') == 5)
end

function test.shared_structure_is_kept_between_vms()
  local shared, b = { 1 }, troupe.bytes "x"
  local p = Point.new(shared, b)
  local t, also = cross("internal", { shared, shared, b, p, { deep = { shared, p, b } } }, shared)
  assert(t[1] == t[2] and t[1] == also and t[1] == t[5].deep[1] and t[1] == t[4].x and t[1][1] == 1)
  -- == compares content; what is set in one must be seen in the other
  t[3][1] = 65
  assert(tostring(t[4].y) == "A" and tostring(t[5].deep[3]) == "A")
  assert(t[4] == t[5].deep[2] and troupe.is(t[4], Point))
  local m = troupe.map {}
  t = cross("internal", { m, m })
  assert(t[1] == t[2] and hex(encode("typed", t)) == "928080")
  -- written out at each place for a peer
  assert(hex(encode("typed", { shared, shared })) == "9291019101")
  assert(encode("internal", { { 1 }, { 1 } }) == encode("typed", { { 1 }, { 1 } }))
end

function test.cycles_are_kept_between_vms()
  local t = { name = "t", list = {} }
  t.self, t.list[1], t.list[2] = t, t, t.list
  local a = cross("internal", t)
  assert(a ~= t and a.self == a and a.list[1] == a and a.list[2] == a.list and a.name == "t")
  local p = Point.new()
  p.x = p
  p = cross("internal", p)
  assert(p.x == p and troupe.is(p, Point))
  -- two arguments that hold each other
  local x, y = {}, {}
  x.y, y.x = y, x
  x, y = cross("internal", x, y)
  assert(x.y == y and y.x == x)
end

function test.much_shared_structure_is_kept()
  -- far more containers than a message usually has, each one twice
  local t = { {}, {} }
  for i = 1, 20000 do
    t[1][i] = { i }
    t[2][i] = t[1][i]
  end
  t = cross("internal", t)
  for i = 1, 20000 do assert(t[1][i] == t[2][i] and t[1][i][1] == i) end
end

function test.classes_are_loaded_for_what_another_vm_sends()
  local bytes = encode("internal", { Point.new(5) })
  forget "shape"
  modules = {
    shape = function()
      Loaded = troupe.class "Point"
      function Loaded:init() error "init ran" end
    end,
  }
  local p = decode("internal", bytes)[1]
  assert(troupe.is(p, Loaded) and Loaded ~= Point and p.x == 5)
end

function test.errors_stay_errors_between_vms()
  local _, e = pcall(troupe.map, 42)
  local again = cross("internal", { e, e })
  assert(again[1] == again[2] and tostring(again[1]) == e.message and again[1].code == "bad-request")
  local map = cross("typed", e)
  assert(map.message == e.message and map.code == e.code and tostring(map) ~= e.message)
end

function test.nesting_goes_to_128_levels()
  for _, form in ipairs { "internal", "typed", "plain" } do
    local value, depth = cross(form, nested(128)), 1
    while value[1] do
      value, depth = value[1], depth + 1
    end
    assert(depth == 128)
  end
end

return test
