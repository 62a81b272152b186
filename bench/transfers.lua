-- SPDX-License-Identifier: Apache-2.0
-- One buffer that goes to and fro between two actors, as bench/actors.py measures it.
local troupe = require "troupe"

local Mover = troupe.actor "Mover"

function Mover.on:back(buffer)
  return troupe.transfer(buffer)
end

-- Makes the buffer, and who it is handed to.
function Mover.on:make(bytes)
  self.buffer = troupe.bytes(bytes)
  self.other = self.other or troupe.spawn(Mover, { heap = "256M", mailbox_bytes = "256M" })
end

-- Hands the buffer over and gets it back, so many times; answers how long it is then.
function Mover.async:move(count)
  local back, buffer = self.other.back, self.buffer
  for _ = 1, count do
    buffer = troupe.await(troupe.ask(back, troupe.transfer(buffer)))
  end
  self.buffer = buffer
  return #buffer
end

return Mover
