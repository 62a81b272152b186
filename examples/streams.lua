-- SPDX-License-Identifier: Apache-2.0
-- A component (streams.json) of streams, each held by the replica that has opened it. What must survive that replica, the title and who
-- holds the stream, is an entity; the stream itself is in its state.
local troupe = require "troupe"
local open_stream = require "source".open
local ops = {}

function ops.create(input, changes, context)
  changes.title, changes.holder = input.title, context.instance
  context.state[changes.id] = open_stream(changes.id)
  return { id = changes.id, instance = context.instance }
end

function ops.list(input, entities, context)
  return entities
end

-- Any replica runs this; only one holds the stream, and that may be gone.
function ops.finish(input, entity, context)
  if not entity then
    return context.error "NO_SUCH_STREAM"
  end
  pcall(troupe.await, context.call("media.streams", "release", { id = entity.id }, { instance = entity.holder }))
  entity.holder = nil
end

function ops.watch(input, context)
  local stream = context.state[input.id]
  if not stream then
    return context.error "NOT_HELD"
  end
  return stream:next()
end

function ops.release(input, context)
  context.state[input.id] = nil
end

-- Kept as a task when a replica has died: whoever runs it opens what that one held. If somebody changes an entity meanwhile it raises, and
-- is run again.
function ops.reopen(lost, context)
  for _, entity in ipairs(troupe.await(context.entities:list { where = { holder = lost.instance } })) do
    context.state[entity.id] = open_stream(entity.id)
    entity.holder = context.instance
    local ok, failure = pcall(troupe.await, context.entities:put(entity.id, entity, { version = entity.version }))
    if not ok then
      context.state[entity.id] = nil
      error(failure)
    end
  end
end

-- An end in order is no death, so it asks for that itself.
local function dispose(context)
  if next(context.state) then
    troupe.await(context.task("media.streams", "reopen", { instance = context.instance }))
  end
end

return { operations = ops, dispose = dispose }
