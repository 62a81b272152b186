-- SPDX-License-Identifier: Apache-2.0
-- A byte buffer is copied, or its storage is handed over and the sender's is empty. Prints 5 5, then 7 0.
local troupe = require "troupe"

local Sizer = troupe.actor "Sizer"

function Sizer.on:size(buffer)  return #buffer end

troupe.main(function()
  local sizer = troupe.spawn(Sizer)

  local copied = troupe.bytes "hello"
  print(("%d %d"):format(troupe.await(troupe.ask(sizer.size, copied)), #copied))   --> 5 5

  local handed = troupe.bytes "goodbye"
  print(("%d %d"):format(troupe.await(troupe.ask(sizer.size, troupe.transfer(handed))), #handed))   --> 7 0
end)
