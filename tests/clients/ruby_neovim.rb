# SPDX-License-Identifier: Apache-2.0
# Drives the session of the neovim gem (see stock.py).
require "neovim"

session = Neovim::Session.new(Neovim::EventLoop.unix(ARGV[0]))
arrived = []

STDOUT.sync = true
STDIN.each_line do |line|
  operation, method, params = MessagePack.unpack([line.chomp].pack("H*"))
  answer =
    case operation
    when "request"
      begin
        ["result", session.request(method, *params)]
      rescue RuntimeError => error
        ["error", error.message]
      end
    when "notify"
      # The library writes it when it reads next.
      session.notify(method, *params)
      ["sent"]
    else
      while arrived.empty?
        session.run do |message|
          arrived << message
          session.stop
        end
      end
      message = arrived.shift
      session.respond(message.id, message.arguments) if message.sync?
      [message.sync? ? "request" : "notification", message.method_name, message.arguments]
    end
  puts MessagePack.pack(answer).unpack1("H*")
end
