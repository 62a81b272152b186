#!/usr/bin/env ruby
# SPDX-License-Identifier: Apache-2.0
# Spawns a counter (or the actor that is named), tells it twice, asks it once and prints 3; or what was refused.
require "msgpack"
require "socket"

daemon = UNIXSocket.new(ENV.fetch("TROUPE_SOCKET"))
answers = MessagePack::Unpacker.new(daemon)

request = lambda do |msgid, method, *params|
  daemon.write([0, msgid, method, params].to_msgpack)
  _, _, error, result = answers.read
  abort "#{method}: #{error["code"]}: #{error["message"]}" if error
  result
end

request.(0, "hello", { errors: "map" })
counter = request.(1, "spawn", ARGV.fetch(0, "counter"), [])
request.(2, "send", counter, "bump", [2])
request.(3, "send", counter, "bump", [])
puts request.(4, "ask", counter, "total", [])
