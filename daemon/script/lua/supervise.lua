-- SPDX-License-Identifier: Apache-2.0
--
-- `supervise`: what it is given is looked at here, where it is written, and brought into a form that can be sent. What is done with
-- it is in supervisor.lua, in an actor of its own, which looks at it again: one can also be started by its name.
--
--   name_of(v)              "module:Name" of a declared actor, or the text that names one; else nil
--   misuse(where, v, wanted), refuse(format, ...)   raise `bad-request`
--   check_options(where, t) raises at what `spawn` takes for no options
--   check_arguments(where, ...)  raises at what cannot be sent
--   check_ms(where, v)      milliseconds above 0
--   check_level()           raises at the top level of a file
--   start(names, actor, ...)  starts the supervisor, whose the names are from then on; answers its handle

local name_of, misuse, refuse, check_options, check_arguments, check_ms, check_level, start = ...
local type, pairs, next, tostring, is_whole, max, unpack =
  type, pairs, next, tostring, math.type, math.max, table.unpack

local ARGUMENTS_MAX = 200
local SUPERVISOR = "troupe.supervisor"
local STRATEGIES = { ["one-for-one"] = true, ["one-for-all"] = true, ["rest-for-one"] = true }
local RESTARTS = { permanent = true, transient = true, temporary = true }
local BESIDE_THE_ACTOR = { name = true, publish = true, restart = true, options = true }
local OPTIONS = { strategy = true, restarts = true, within = true, backoff = true }
local PAUSES = { min = true, max = true }

local function check_keys(where, t, known)
  for key in pairs(t) do
    if not known[key] then refuse("%s: there is no option `%s`", where, tostring(key)) end
  end
end

-- A pause may be 0: none.
local function check_pause(where, value)
  return value == 0 and 0 or check_ms(where, value)
end

local function check_backoff(where, backoff)
  if backoff == nil then backoff = {} end
  if type(backoff) ~= "table" then misuse(where .. ": backoff", backoff, "a table { min = ms, max = ms }") end
  check_keys(where .. ": backoff", backoff, PAUSES)
  local least = backoff.min ~= nil and check_pause(where .. ": backoff.min", backoff.min)
  local most = backoff.max ~= nil and check_pause(where .. ": backoff.max", backoff.max)
  least = least or (most and most < 100 and most or 100)
  most = most or max(least, 10000)
  if least > most then refuse("%s: backoff.min is more than backoff.max", where) end
  return { min = least, max = most }
end

local function check_supervision(where, options)
  if options == nil then options = {} end
  if type(options) ~= "table" then misuse(where, options, "a table of options") end
  check_keys(where, options, OPTIONS)
  local strategy, restarts = options.strategy, options.restarts
  if strategy == nil then strategy = "one-for-one" end
  if not STRATEGIES[strategy] then
    misuse(where .. ": strategy", strategy, "a strategy (one-for-one, one-for-all, rest-for-one)")
  end
  if restarts == nil then restarts = 3 end
  if is_whole(restarts) ~= "integer" or restarts < 0 then misuse(where .. ": restarts", restarts, "a whole number, 0 or more") end
  return {
    strategy = strategy,
    restarts = restarts,
    within = options.within == nil and 5000 or check_ms(where .. ": within", options.within),
    backoff = check_backoff(where, options.backoff),
  }
end

-- What is said of a child once: among `spawn`'s options, where they are looked at, or beside the actor.
local function check_child_options(where, child)
  local given, options = child.options, {}
  if given == nil then given = {} end
  if type(given) ~= "table" then misuse(where .. ": options", given, "a table of options") end
  for key, value in next, given do options[key] = value end
  for _, key in pairs { "name", "publish" } do
    if child[key] ~= nil then
      if options[key] ~= nil then refuse("%s: `%s` is given twice", where, key) end
      options[key] = child[key]
    end
  end
  check_options(where, options)
  child.name, child.publish, options.name, options.publish = options.name, options.publish, nil, nil
  child.options = options
end

-- A child's table, copied.
local function copy_child(path, spec)
  local where, child, last = "supervise: " .. path, {}, 1
  if type(spec) ~= "table" then misuse(where, spec, "a child: a table { actor, arguments... }") end
  for key, value in pairs(spec) do
    if is_whole(key) == "integer" and key >= 1 and key <= ARGUMENTS_MAX then
      last = max(last, key)
    elseif not BESIDE_THE_ACTOR[key] then
      refuse("%s: there is no option `%s`", where, tostring(key))
    end
    child[key] = value
  end
  child[1] = name_of(spec[1]) or misuse(where, spec[1], "an actor")
  check_arguments(where, unpack(child, 2, last))
  if child.restart == nil then child.restart = "permanent" end
  if not RESTARTS[child.restart] then
    misuse(where .. ": restart", child.restart, "a kind of restart (permanent, transient, temporary)")
  end
  check_child_options(where, child)
  return child
end

-- Answers the children and the options in full, and the names that are published.
local function check(children, children_path, options, options_path)
  if type(children) ~= "table" then misuse("supervise: " .. children_path, children, "a list of children") end
  local copies, names, used = {}, {}, { name = {}, publish = {} }
  for key in pairs(children) do
    if is_whole(key) ~= "integer" or key < 1 or key > #children then
      misuse("supervise: " .. children_path, children, "a list of children")
    end
  end
  for i = 1, #children do
    local path, child = ("%s[%d]"):format(children_path, i), children[i]
    if type(child) == "table" and name_of(child[1]) == SUPERVISOR then
      local copy = {}
      for key, value in pairs(child) do copy[key] = value end
      copy[2], copy[3] = check(child[2], path .. "[2]", child[3], path .. "[3]")
      child = copy
    end
    copies[i] = copy_child(path, child)
    for kind, taken in pairs(used) do
      local name = copies[i][kind]
      if name ~= nil then
        if taken[name] then refuse("supervise: %s: another child has `%s` for its `%s`", path, name, kind) end
        taken[name] = true
      end
    end
    names[#names + 1] = copies[i].publish
  end
  local where = options_path and "supervise: " .. options_path or "supervise"
  return copies, check_supervision(where, options), names
end

local function supervise(children, options)
  check_level()
  local checked, supervision, names = check(children, "children", options)
  return (start(names, SUPERVISOR, checked, supervision))
end

return { supervise = supervise }, check
