// SPDX-License-Identifier: Apache-2.0
// Drives the Transport of npm's neovim (see stock.py).
const net = require("node:net");
const { decode, encode } = require("@msgpack/msgpack");
const { Transport } = require("neovim/lib/utils/transport");

const socket = net.connect(process.argv[2]);
const transport = new Transport();
transport.attach(socket, socket);

require("./pump").pump({
  decode,
  encode: (value) => Buffer.from(encode(value)),
  emitter: transport,
  request: (method, params, answer) => transport.request(method, params, answer),
  notify: (method, params) => transport.notify(method, params),
  end: () => socket.end(),
});
