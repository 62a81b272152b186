# SPDX-License-Identifier: Apache-2.0
"""The client in examples/ over the vectors: test_vectors_by_hand.py says how it is talked to."""
import runpy, sys
import msgpack

sys.stdout.reconfigure(line_buffering=True)
request = runpy.run_path(sys.argv.pop(1))["request"]
for line in sys.stdin:
    target, handler, value = line.split()
    answer = request(5, "ask", target, handler, [msgpack.unpackb(bytes.fromhex(value))])
    print(msgpack.packb(answer).hex())
