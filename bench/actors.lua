-- SPDX-License-Identifier: Apache-2.0
-- What actors do among each other, as bench/actors.py measures it.
local troupe = require "troupe"

-- Sends between two asks, so that they do not overrun a mailbox of 65,536; so many such windows may be ahead of the last answer.
local WINDOW, WINDOWS = 4096, 8

local Driver = troupe.actor "Driver"

function Driver:init()
  self.counter = troupe.spawn("counter")
  self.crowd = {}
end

-- Asks one after another.
function Driver.async:ask(count)
  local bump = self.counter.bump
  for _ = 1, count do
    troupe.await(troupe.ask(bump))
  end
end

-- Answers when all of them have been handled, with how many that were.
function Driver.async:send(count)
  local bump, total = self.counter.bump, self.counter.total
  local before = troupe.await(troupe.ask(total))
  local windows = {}
  for at = 0, count // WINDOW - 1 do
    for _ = 1, WINDOW do
      troupe.send(bump)
    end
    local slot = at % WINDOWS
    if windows[slot] then
      troupe.await(windows[slot])
    end
    windows[slot] = troupe.ask(total)
  end
  return troupe.await(troupe.ask(total)) - before
end

-- Spawns actors one after another, each when the one before is ready.
function Driver.async:spawn(count)
  for _ = 1, count do
    local member = troupe.spawn("counter")
    self.crowd[#self.crowd + 1] = member
    troupe.await(troupe.ask(member.total))
  end
end

return Driver
