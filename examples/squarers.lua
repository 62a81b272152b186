-- SPDX-License-Identifier: Apache-2.0
-- Four actors asked at once, each on a thread of its own. Prints 1, 4, 9, 16.
local troupe = require "troupe"

local Squarer = troupe.actor "Squarer"

function Squarer.on:square(x)  return x * x end

troupe.main(function()
  local asked = {}
  for i = 1, 4 do
    asked[i] = troupe.ask(troupe.spawn(Squarer).square, i)
  end
  print(table.concat(troupe.await(troupe.all(asked)), ", "))   --> 1, 4, 9, 16
end)
