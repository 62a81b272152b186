# SPDX-License-Identifier: Apache-2.0
# The client in examples/ over the vectors: test_vectors_by_hand.py says how it is talked to.
$stdout.sync = true
client = ARGV.shift
here = binding
here.eval(File.read(client), client)
request = here.local_variable_get(:request)

$stdin.each_line do |line|
  target, handler, value = line.split
  answer = request.(5, "ask", target, handler, [MessagePack.unpack([value].pack("H*"))])
  puts answer.to_msgpack.unpack1("H*")
end
