-- SPDX-License-Identifier: Apache-2.0
-- Instances of a class cross as instances, with their methods. Prints true 11 12.
local troupe = require "troupe"

local Point = troupe.class "Point"

function Point:init(x, y)    self.x, self.y = x, y end
function Point:move(dx, dy)  self.x, self.y = self.x + dx, self.y + dy end

local Mover = troupe.actor "Mover"

-- The point is a copy, in this actor; the one it was copied from stays where it is.
function Mover.on:move(point, dx, dy)
  point:move(dx, dy)
  return point
end

troupe.main(function()
  local mover = troupe.spawn(Mover)
  local moved = troupe.await(troupe.ask(mover.move, Point.new(1, 2), 10, 10))
  print(("%s %d %d"):format(troupe.is(moved, Point), moved.x, moved.y))   --> true 11 12
end)
