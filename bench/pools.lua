-- SPDX-License-Identifier: Apache-2.0
-- The workers that bench/pools.py measures, and who adds up what they have handled.

local troupe = require "troupe"

local Worker = troupe.actor "Worker"

function Worker:init(ledger)
  self.handled = 0
  self.ledger = troupe.handle(ledger)
end

function Worker.on:bump()
  self.handled = self.handled + 1
  return self.handled
end

function Worker.on:total() return self.handled end

-- Keeps a CPU busy.
function Worker.on:spin(times)
  local x = 0
  for i = 1, times do x = x ~ i end
  return -1
end

function Worker:close()
  troupe.send(self.ledger.add, self.handled)
end

local Ledger = troupe.actor "Ledger"

function Ledger:init() self.sum = 0 end
function Ledger.on:add(n) self.sum = self.sum + n end

function Ledger.on:take()
  local sum = self.sum
  self.sum = 0
  return sum
end
