-- SPDX-License-Identifier: Apache-2.0
-- An actor that starts others, and replaces the one that breaks. Prints 1.
local troupe = require "troupe"

local Worker = troupe.actor "Worker"

function Worker.on:divide(a, b)  return a // b end

local Boss = troupe.actor "Boss"

function Boss:init()
  self.worker = troupe.spawn(Worker)
  self.replaced = 0
end

-- The quotient, or nil where the worker broke over it.
function Boss.async:divide(a, b)
  local worker = self.worker
  local ok, quotient = pcall(troupe.await, troupe.ask(worker.divide, a, b))
  if ok then return quotient end
  if worker == self.worker then
    self.worker = troupe.spawn(Worker)
    self.replaced = self.replaced + 1
  end
end

function Boss.on:replaced()  return self.replaced end

troupe.main(function()
  local boss = troupe.spawn(Boss)
  for _, divisor in ipairs { 3, 0, 7 } do
    troupe.await(troupe.ask(boss.divide, 42, divisor))
  end
  print(troupe.await(troupe.ask(boss.replaced)))   --> 1
end)
