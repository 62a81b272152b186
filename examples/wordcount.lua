-- SPDX-License-Identifier: Apache-2.0
-- Counts words, line by line, and answers which are commonest.
--
--   trouped run wordcount.lua FILE [N]     prints the N (10) commonest words of a file
--   troupe spawn wordcount --publish words
--   troupe send words line --lines <FILE
--   troupe ask words top 10
local troupe = require "troupe"

local Wordcount = troupe.actor "Wordcount"

function Wordcount:init()
  self.counts = {}
end

function Wordcount.on:line(text)
  for word in text:lower():gmatch "%a+" do
    self.counts[word] = (self.counts[word] or 0) + 1
  end
end

-- The n commonest words as a list of {word, count}: the most frequent first, equals in the alphabet's order.
function Wordcount.on:top(n)
  local list = {}
  for word, count in pairs(self.counts) do
    list[#list + 1] = { word, count }
  end
  table.sort(list, function(a, b)
    if a[2] ~= b[2] then return a[2] > b[2] end
    return a[1] < b[1]
  end)
  return table.move(list, 1, math.min(n, #list), 1, {})
end

troupe.main(function(path, n)
  local words = troupe.spawn(Wordcount)
  local sent = 0
  for line in io.lines(path) do
    sent = sent + 1
    if sent % 1000 == 0 then
      troupe.await(troupe.ask(words.line, line))   -- so that a long file never overruns the mailbox
    else
      troupe.send(words.line, line)
    end
  end
  for _, entry in ipairs(troupe.await(troupe.ask(words.top, tonumber(n) or 10))) do
    print(("%-12s %6d"):format(entry[1], entry[2]))
  end
end)
