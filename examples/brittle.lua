-- SPDX-License-Identifier: Apache-2.0
-- A fault ends the actor, and reaches whoever asked, and whoever waits for its end.
-- Prints asked: it broke, then done: it broke.
local troupe = require "troupe"

local Brittle = troupe.actor "Brittle"

function Brittle.on:touch()  error("it broke", 0) end

troupe.main(function()
  local brittle = troupe.spawn(Brittle)
  local _, e = pcall(troupe.await, troupe.ask(brittle.touch))
  print("asked: " .. tostring(e))   --> asked: it broke
  _, e = pcall(troupe.await, troupe.done(brittle))
  print("done: " .. tostring(e))    --> done: it broke
end)
