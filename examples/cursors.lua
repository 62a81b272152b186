-- SPDX-License-Identifier: Apache-2.0
-- A component that keeps files open. Any replica may open one; reading on goes to the replica that has it, by its name.
-- Prints the lines of the file that it is given, numbered, and how many there were.
local troupe = require "troupe"

local operations = {}

function operations.open(input, context)
  local file = io.open(input.path)
  if not file then
    return context.error("NO_SUCH_FILE", { path = input.path })
  end
  local state = context.state
  state.last = (state.last or 0) + 1
  state[state.last] = file
  return { cursor = state.last, instance = context.instance }
end

-- The next line; without one the file is closed, and the cursor is nobody's.
function operations.next(input, context)
  local file = context.state[input.cursor]
  if not file then
    return context.error "NOT_HELD"
  end
  local line = file:read()
  if not line then
    file:close()
    context.state[input.cursor] = nil
  end
  return { line = line }
end

local manifest = {
  name = "files.cursors",
  module = "cursors",
  replicas = 2,
  operations = {
    open = {
      type = "effect",
      errors = { "NO_SUCH_FILE" },
      input = { type = "object", required = { "path" }, properties = { path = { type = "string" } } },
      output = { type = "object", required = { "cursor", "instance" } },
    },
    next = {
      type = "effect",
      stateful = true,
      errors = { "NOT_HELD" },
      input = { type = "object", required = { "cursor" }, properties = { cursor = { type = "integer" } } },
      output = { type = "object", properties = { line = { type = "string" } } },
    },
  },
}

troupe.main(function(path)
  local function call(operation, input, options)
    return troupe.await(troupe.call(manifest.name, operation, input, options))
  end

  troupe.component(manifest)
  local opened = call("open", { path = path })
  local read = 0
  while true do
    local line = call("next", { cursor = opened.cursor }, { instance = opened.instance }).line
    if not line then
      break
    end
    read = read + 1
    print(read, line)
  end
  print(read .. " lines, and then: "
        .. select(2, pcall(call, "next", { cursor = opened.cursor }, { instance = opened.instance })).error)
end)

return { operations = operations }
