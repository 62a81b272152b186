-- SPDX-License-Identifier: Apache-2.0
--
-- Promises over promises. Each function gets, before its arguments, the promise that its caller has (combine.c), and settles
-- it. The chunk is given what it stands on:
--
--   state(p)          "pending", "fulfilled" or "rejected", and what it settled with
--   when(p, fn)       calls fn when p has settled, perhaps at once; p is wanted from then on
--   fulfil(p, v), reject(p, e)
--   withdraw(p)       takes back what a pending ask asked: its `ran`, "no" or "maybe"; false where its answer is on the way
--                     already, nil where p is no ask
--   sleep(ms), cancel(s)
--   fault(code, message, ran)  an error table
--   check(list, function)  raises where the list is no list of promises; answers its length
--   check_promise(p, function), check_ms(ms, function)
--
-- Nothing of the actor's own code runs in a callback.

local state, when, fulfil, reject, withdraw, sleep, cancel, fault, check, check_promise, check_ms = ...

local function all(result, list)
  local n = check(list, "all")
  local values, left = {}, n
  if n == 0 then fulfil(result, values) end
  for i = 1, n do
    when(list[i], function(p)
      local status, value = state(p)
      if status == "rejected" then return reject(result, value) end
      values[i] = value
      left = left - 1
      if left == 0 then fulfil(result, values) end
    end)
  end
end

local function race(result, list)
  local n = check(list, "race")
  for i = 1, n do
    when(list[i], function(p)
      local status, value = state(p)
      if status == "rejected" then reject(result, value) else fulfil(result, value) end
    end)
  end
end

local function any(result, list)
  local n = check(list, "any")
  local errors, left = {}, n
  local function none()
    local e = fault("fault", n == 0 and "any: there is nothing to wait for" or "any: all of them were rejected", "yes")
    e.errors = errors
    reject(result, e)
  end
  if n == 0 then none() end
  for i = 1, n do
    when(list[i], function(p)
      local status, value = state(p)
      if status == "fulfilled" then return fulfil(result, value) end
      errors[i] = value
      left = left - 1
      if left == 0 then none() end
    end)
  end
end

local function settled(result, list)
  local n = check(list, "settled")
  local outcomes, left = {}, n
  if n == 0 then fulfil(result, outcomes) end
  for i = 1, n do
    when(list[i], function(p)
      local status, value = state(p)
      outcomes[i] = status == "rejected" and { status = status, reason = value } or { status = status, value = value }
      left = left - 1
      if left == 0 then fulfil(result, outcomes) end
    end)
  end
end

local function timeout(result, p, ms)
  check_promise(p, "timeout")
  check_ms(ms, "timeout")
  local clock = sleep(ms)
  when(p, function()
    cancel(clock)
    local status, value = state(p)
    if status == "rejected" then reject(result, value) else fulfil(result, value) end
  end)
  when(clock, function()
    local ran = withdraw(p)
    if ran == false then return end
    local e = fault("timeout", "it has not settled in time", ran or "maybe")
    reject(result, e)
    if ran then reject(p, e) end
  end)
end

return { all = all, any = any, race = race, settled = settled, timeout = timeout }
