-- SPDX-License-Identifier: Apache-2.0
-- An asynchronous handler is re-entrant: while it waits, the actor takes its next message.
-- Prints start a, start b, end a, end b.
local troupe = require "troupe"

local Slow = troupe.actor "Slow"

function Slow:init(ms)
  self.ms = ms or 100
  self.seen = {}
end

function Slow.async:work(name)
  self.seen[#self.seen + 1] = "start " .. name
  troupe.await(troupe.sleep(self.ms))
  self.seen[#self.seen + 1] = "end " .. name
end

function Slow.on:history()
  return table.concat(self.seen, ", ")
end

troupe.main(function()
  local slow = troupe.spawn(Slow)
  troupe.await(troupe.all { troupe.ask(slow.work, "a"), troupe.ask(slow.work, "b") })
  print(troupe.await(troupe.ask(slow.history)))   --> start a, start b, end a, end b
end)
