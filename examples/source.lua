-- SPDX-License-Identifier: Apache-2.0
-- Where the streams of streams.lua come from. These count their frames.
local Stream = {}
Stream.__index = Stream

function Stream:next()
  self.frame = self.frame + 1
  return { id = self.id, frame = self.frame }
end

return {
  open = function(id)
    return setmetatable({ id = id, frame = 0 }, Stream)
  end,
}
