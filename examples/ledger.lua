-- SPDX-License-Identifier: Apache-2.0
-- An actor whose constructor is generated from its fields. Prints 17, then petty cash: 2 entries.
local troupe = require "troupe"

local Ledger = troupe.actor "Ledger"

Ledger.fields = { "name", "entries" }
Ledger.defaults = { entries = function() return {} end }

function Ledger.on:enter(amount, what)
  self.entries[#self.entries + 1] = { amount = amount, what = what }
end

function Ledger.on:balance()
  local sum = 0
  for _, entry in ipairs(self.entries) do
    sum = sum + entry.amount
  end
  return sum
end

function Ledger.on:summary()
  return ("%s: %d entries"):format(self.name, #self.entries)
end

troupe.main(function()
  local ledger = troupe.spawn(Ledger, "petty cash")
  troupe.send(ledger.enter, 20, "float")
  troupe.send(ledger.enter, -3, "stamps")
  print(troupe.await(troupe.ask(ledger.balance)))   --> 17
  print(troupe.await(troupe.ask(ledger.summary)))   --> petty cash: 2 entries
end)
