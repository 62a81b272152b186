-- SPDX-License-Identifier: Apache-2.0
-- Work with nothing to remember, for a pool: counts the words of a line.
-- Prints four lines are 17 words, by the workers w-1 w-2.
local troupe = require "troupe"

local Counter = troupe.actor "Counter"

function Counter.on:count(line)
  local _, words = line:gsub("%S+", "")
  return words
end

function Counter.on:who()
  return troupe.whoami().worker
end

local lines = {
  "Tell me, O Muse, of that ingenious hero", "who travelled far", "and wide", "after he had sacked",
}

troupe.main(function()
  local pool = troupe.pool("words", Counter, { workers = 2 })
  local asked, who = {}, {}
  for i, line in ipairs(lines) do
    asked[i] = troupe.ask(pool.count, line)
  end
  local words = 0
  for _, count in ipairs(troupe.await(troupe.all(asked))) do
    words = words + count
  end
  repeat -- until both have started
    who[troupe.await(troupe.ask(pool.who))] = true
  until who["w-1"] and who["w-2"]
  print("four lines are " .. words .. " words, by the workers w-1 w-2")
end)
