-- SPDX-License-Identifier: Apache-2.0
-- An actor that answers what it is asked: what a call of bench/parrots.lua is measured beside.
local troupe = require "troupe"
local Parrot = troupe.actor "Parrot"
function Parrot.on:echo(input)
  return input
end
return Parrot
