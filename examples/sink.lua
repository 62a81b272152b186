-- SPDX-License-Identifier: Apache-2.0
-- What cannot cross is refused where it is sent, by name, and was not sent at all.
-- Prints a message may not carry a function: `handlers.onDone` is a function.
local troupe = require "troupe"

local Sink = troupe.actor "Sink"

function Sink.on:take(job)  return job end

troupe.main(function()
  local sink = troupe.spawn(Sink)
  local job = { name = "backup", handlers = { onDone = function() print "done" end } }
  local _, e = pcall(troupe.send, sink.take, job)
  print(e)
end)
