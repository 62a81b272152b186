-- SPDX-License-Identifier: Apache-2.0
--
-- The supervisor: an actor that starts others and starts them again. Its model is Erlang/OTP's.
--
--   check(children, path, options, path)  see supervise.lua
--   when(p, fn), state(p)     see promises.lua
--   rejected(code, message)   a promise that was rejected with that
--   spawn(A, ...)             as `troupe.spawn`, but what it starts is stopped by nobody but this actor, while that lives; its
--                             published name is this actor's, which moves it along in one step; and in front of the handle it
--                             answers a promise that settles when its `init` has ended
--   keep(name), release(name) the name is this actor's from now on, or is nobody's
--   restarted(handle)         tells the daemon that this one, which has started, replaces another
--   now()                     milliseconds
--   grace                     how long who is told to stop may take, in milliseconds
--
-- Each child is started when the `init` of the one before it has ended. At first this actor's own `init` waits for that, so that nobody
-- sees it with less than all its children; later nothing waits in a handler, so that an orderly stop can begin at any time: ends are
-- told to callbacks. A child is its spec, and
--
--   handle   what was started last; nil where nothing is in use any more
--   ended    the promise of that one's end, until it is known
--   began    when it was started
--   pause    before its next restart
--   go_on    what is to be done when it has started, where it is one of a round; also where it is stopped before that, for good
--   round    set from an end until the start after it: what is being done about it, and about all that it concerns. A later
--            end that concerns more takes their round over, and the earlier one is given up.

local check, when, state, rejected, spawn, keep, release, restarted, now, grace = ...
local troupe = require "troupe"
local pairs, ipairs, pcall, error, tostring, unpack, min, max =
  pairs, ipairs, pcall, error, tostring, table.unpack, math.min, math.max
local await, done, log, marked, sleep, stop = troupe.await, troupe.done, troupe.log, troupe.options, troupe.sleep, troupe.stop

local Supervisor = troupe.actor "Supervisor"

-- What `spawn` is called with: the actor, its arguments (holes among them are nil), its options.
local function call_of(child)
  local options, call, count = {}, {}, 1
  for key, value in pairs(child.options) do options[key] = value end
  options.name, options.publish = child.name, child.publish
  for key, value in pairs(child) do
    if math.type(key) == "integer" then
      call[key] = value
      count = max(count, key)
    end
  end
  call[count + 1] = marked(options)
  return call, count + 1
end

function Supervisor:init(children, options)
  local names
  self.children, self.options, names = check(children, "children", options)
  self.failed = {} -- when, within the window
  for _, name in ipairs(names) do keep(name) end
  for index, child in ipairs(self.children) do
    child.index = index
    child.label = child.name or child.publish or child[1]
    child.call, child.count = call_of(child)
  end
  for _, child in ipairs(self.children) do
    local started = not child.round and self:start(child)
    if started and not pcall(await, started) and child.ended then pcall(await, child.ended) end
  end
end

-- Answers the promise of its start; nil where it could not be started.
function Supervisor:start(child)
  local replaces = child.began ~= nil
  child.began, child.round = now(), nil
  local ok, started, handle = pcall(spawn, unpack(child.call, 1, child.count))
  if not ok then
    self:on_end(child, started)
    return nil
  end
  child.handle, child.ended = handle, done(handle)
  when(child.ended, function(ended)
    if child.ended ~= ended then return end
    child.ended = nil
    local status, failure = state(ended)
    self:on_end(child, status == "rejected" and failure or nil)
  end)
  if replaces then
    when(started, function()
      if state(started) == "fulfilled" then restarted(handle) end
    end)
  end
  return started
end

-- It is not started again for its own sake. Its name is free where it is not started again at all.
function Supervisor:forget(child)
  child.handle, child.pause = nil, nil
  local for_good = child.restart == "temporary" or self.options.strategy == "one-for-one"
  if for_good and child.publish then release(child.publish) end
end

-- `failure` nil: it stopped orderly.
function Supervisor:on_end(child, failure)
  if self.stopping or child.round then return end
  local go_on = child.go_on
  child.go_on = nil
  if child.restart == "temporary" or (child.restart == "transient" and not failure) then
    self:forget(child)
    if go_on then go_on() end
    return
  end
  local how, at = failure and tostring(failure) or "it stopped", now()
  if self:has_run_out(at) then
    self:give_up(child, how)
    return
  end

  local pause = self:next_pause(child, at)
  log("warning", "the child %s ended: %s; it is started again in %d ms", child.label, how, pause)
  self:restart(child, at, pause)
end

-- Counts one more restart, and answers whether that is more than there may be within the window.
function Supervisor:has_run_out(at)
  local recent = {}
  for _, before in ipairs(self.failed) do
    if at - before < self.options.within then recent[#recent + 1] = before end
  end
  recent[#recent + 1] = at
  self.failed = recent
  return #recent > self.options.restarts
end

-- Doubles from end to end, and begins anew when the child has run for as long as the window is.
function Supervisor:next_pause(child, at)
  local backoff = self.options.backoff
  local pause = at - child.began < self.options.within and child.pause or backoff.min
  child.pause = min(max(2 * pause, 1), backoff.max)
  return pause
end

-- Whom the end of a child concerns: the first and the last of them.
function Supervisor:concerned(child)
  local strategy = self.options.strategy
  return strategy == "one-for-all" and 1 or child.index, strategy == "one-for-one" and child.index or #self.children
end

-- The pause begins with the end; stopping the others is part of it.
function Supervisor:restart(child, at, pause)
  local round, first, last = {}, self:concerned(child)
  for i = first, last do self.children[i].round = round end
  local function is_over() return self.stopping or child.round ~= round end
  local function start_up()
    if not is_over() then self:start_up(first, last, round) end
  end
  self:stop_down(last, first, is_over, function()
    local left = at + pause - now()
    if left > 0 then when(sleep(left), start_up) else start_up() end
  end)
end

-- One that cannot be started, or whose `init` fails, ends it: that is an end of its own, which concerns all that would have come.
function Supervisor:start_up(at, last, round)
  local child = self.children[at]
  if at > last or self.stopping or child.round ~= round then return end
  if child.restart == "temporary" then
    child.round = nil
    self:forget(child)
    return self:start_up(at + 1, last, round)
  end
  local function go_on() self:start_up(at + 1, last, round) end
  child.go_on = go_on
  local started = self:start(child)
  if not started then return end
  when(started, function()
    if state(started) ~= "fulfilled" or child.go_on ~= go_on then return end
    child.go_on = nil
    go_on()
  end)
end

-- Stops the children from `from` down to `to`, each when the one before it has ended; then goes on, unless that is over.
function Supervisor:stop_down(from, to, is_over, go_on)
  for i = from, to, -1 do
    local child = self.children[i]
    if child.ended then
      stop(child.handle, { within = grace })
      return when(child.ended, function()
        if not is_over() then self:stop_down(i - 1, to, is_over, go_on) end
      end)
    end
  end
  go_on()
end

function Supervisor:give_up(child, how)
  self.stopping = true
  self:stop_down(#self.children, 1, function() return false end, function()
    error(("supervise: %s ended, and the restarts have run out (%d within %d ms): %s"):format(
      child.label, self.options.restarts, self.options.within, how), 0)
  end)
end

function Supervisor:close()
  self.stopping = true
  for i = #self.children, 1, -1 do
    local child = self.children[i]
    if child.ended then
      stop(child.handle)
      pcall(await, child.ended)
    end
  end
end

-- The handle in use: between an end and the start after it that of the one that has ended. Nil: it is not started any more.
function Supervisor.on:child(name)
  for _, child in ipairs(self.children) do
    if child.name ~= nil and child.name == name then return child.handle end
  end
  return rejected("not-found", ("there is no child %s"):format(tostring(name)))
end

function Supervisor.on:children()
  local handles = {}
  for _, child in ipairs(self.children) do handles[#handles + 1] = child.handle end
  return handles
end
