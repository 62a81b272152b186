-- SPDX-License-Identifier: Apache-2.0
-- What a module keeps is kept once per actor: each has a runtime of its own, in which the module's top level runs once.
-- Prints 512 1 0 1 1.
local troupe = require "troupe"

local names = {}                         -- the program has one, and so has each actor
runs = (rawget(_G, "runs") or 0) + 1     -- how often this line has run, here

local function add(name)  names[#names + 1] = name end

local Registry = troupe.actor "Registry"

function Registry.on:add(name)  add(name) end
function Registry.on:count()    return #names end

function Registry.on:runs()
  require "registry"                     -- it is loaded: nothing runs again
  return runs
end

troupe.main(function()
  local first, second = troupe.spawn(Registry), troupe.spawn(Registry)
  for i = 1, 512 do
    add("name " .. i)                    -- the program's own
  end
  troupe.send(first.add, "another")
  local asked = troupe.all {
    troupe.ask(first.count), troupe.ask(second.count), troupe.ask(first.runs), troupe.ask(second.runs),
  }
  print(#names .. " " .. table.concat(troupe.await(asked), " "))   --> 512 1 0 1 1
end)
