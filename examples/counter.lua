-- SPDX-License-Identifier: Apache-2.0
-- One owner of a number. Prints 3.
local troupe = require "troupe"

local Counter = troupe.actor "Counter"

function Counter:init()        self.n = 0 end
function Counter.on:bump(by)   self.n = self.n + (by or 1) end
function Counter.on:total()    return self.n end

troupe.main(function()
  local c = troupe.spawn(Counter)
  troupe.send(c.bump, 2)
  troupe.send(c.bump)
  print(troupe.await(troupe.ask(c.total)))   --> 3
end)
