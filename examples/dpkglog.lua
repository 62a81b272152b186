-- SPDX-License-Identifier: Apache-2.0
-- Work for a pool: lines of dpkg's log, /var/log/dpkg.log, as records.
-- Prints: upgrade of perl-base from 5.36.0-6 to 5.36.0-7.
local troupe = require "troupe"

local Parser = troupe.actor "Parser"

local none = { ["<none>"] = true }

-- What stands behind the action: a package and two versions, or one and its state before that, or words for people.
local function details(record, action, rest)
  if action == "status" then
    record.state, record.package, record.arch, record.version = rest:match("^(%S+) ([%w.+-]+):(%w+) (%S+)$")
  else
    record.package, record.arch, record.was, record.version = rest:match("^([%w.+-]+):(%w+) (%S+) (%S+)$")
  end
  if not record.package then record.text = rest end
  if none[record.was] then record.was = nil end
  if none[record.version] then record.version = nil end
  return record
end

function Parser.on:parse(line)
  local day, time, action, rest = line:match("^(%d+%-%d+%-%d+) (%d+:%d+:%d+) (%S+) (.*)$")
  if not day then
    return { unknown = line }
  end
  return details({ at = day .. "T" .. time, action = action }, action, rest)
end

troupe.main(function()
  local pool = troupe.pool("dpkg", Parser, { workers = 2 })
  local record = troupe.await(troupe.ask(pool.parse, "2026-01-02 03:04:05 upgrade perl-base:amd64 5.36.0-6 5.36.0-7"))
  print(record.action .. " of " .. record.package .. " from " .. record.was .. " to " .. record.version)
end)
