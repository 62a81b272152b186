-- SPDX-License-Identifier: Apache-2.0
-- An actor that takes a message in a millisecond (with `async` of 1), and is no busier for more of them.

local troupe = require "troupe"

local Sleeper = troupe.actor "Sleeper"

function Sleeper.async:put() troupe.await(troupe.sleep(1)) end
