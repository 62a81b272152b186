-- SPDX-License-Identifier: Apache-2.0
-- A global that main sets is not there in an actor, whose runtime is another one. Prints the fault that says so.
local troupe = require "troupe"

local Guard = troupe.actor "Guard"

function Guard.on:admits(age)  return age >= limit end

troupe.main(function()
  limit = 18
  local guard = troupe.spawn(Guard)
  local _, e = pcall(troupe.await, troupe.ask(guard.admits, 21))
  print(e)
end)
