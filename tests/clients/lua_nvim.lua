-- SPDX-License-Identifier: Apache-2.0
-- Drives lua-nvim's session, which stands on lua-mpack (see stock.py). Its first request has the id 0.
local mpack = require "mpack"
local Session = require "nvim.session"
local SocketStream = require "nvim.socket_stream"

local session = Session.new(SocketStream.open(arg[1]))

local function from_hex(line)
  return mpack.unpack((line:gsub("%x%x", function(digits) return string.char(tonumber(digits, 16)) end)))
end

local function to_hex(value)
  return (mpack.pack(value):gsub(".", function(byte) return ("%02x"):format(byte:byte()) end))
end

local operations = {}

function operations.request(method, params)
  local well, value = session:request(method, unpack(params))
  return { well and "result" or "error", value }
end

function operations.notify(method, params)
  session:notify(method, unpack(params))
  return { "sent" }
end

function operations.next()
  local message = session:next_message()
  if message[1] == "request" then
    message[4]:send(message[3])
  end
  return { message[1], message[2], message[3] }
end

for line in io.lines() do
  local command = from_hex(line)
  io.write(to_hex(operations[command[1]](command[2], command[3])), "\n")
  io.flush()
end
