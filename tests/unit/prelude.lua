-- SPDX-License-Identifier: Apache-2.0
-- What the tests of values share (tests/unit/fake_vm.h).

-- Functions set in it are listed in their order.
function tests()
  return setmetatable({}, {
    __newindex = function(list, name, run) rawset(list, #list + 1, { name = name, run = run }) end,
  })
end

null = troupe.null

loading "shape"
Point = troupe.class "Point"
function Point:init(x, y) self.x, self.y = x, y end
loading(nil)

function cross(form, ...)
  return decode(form, encode(form, ...), select("#", ...))
end

function hex(bytes)
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

function unhex(text)
  return (text:gsub("%X", ""):gsub("%x%x", function(h) return string.char(tonumber(h, 16)) end))
end

-- The same number: its type, its bits.
function same(a, b)
  if math.type(a) ~= math.type(b) then return false end
  if math.type(a) == "float" then return string.pack("d", a) == string.pack("d", b) end
  return a == b
end

-- f(...) raises an error of the library whose message has the text in it; answers its code.
function fault(text, f, ...)
  local ok, e = pcall(f, ...)
  assert(not ok, "no fault: " .. text)
  assert(type(e) == "table" and tostring(e):find(text, 1, true), tostring(e))
  return e.code
end

-- f(...) raises an error of the library with that code, path and message.
function refused(code, path, message, f, ...)
  local ok, e = pcall(f, ...)
  assert(not ok, "not refused: " .. message)
  assert(type(e) == "table", e)
  assert(e.message == message, e.message)
  assert(e.code == code and e.path == path, ("%s, %s"):format(e.code, e.path))
end

-- A list of lists, n deep.
function nested(n)
  local value = {}
  for _ = 2, n do value = { value } end
  return value
end
