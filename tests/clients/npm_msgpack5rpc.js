// SPDX-License-Identifier: Apache-2.0
// Drives the session of npm's msgpack5rpc (see stock.py).
const net = require("node:net");
const msgpack = require("msgpack5")();
const Session = require("msgpack5rpc");

const socket = net.connect(process.argv[2]);
const session = new Session();
session.attach(socket, socket);

require("./pump").pump({
  decode: (bytes) => msgpack.decode(bytes),
  encode: (value) => msgpack.encode(value).slice(),
  emitter: session,
  request: (method, params, answer) => session.request(method, params, answer),
  notify: (method, params) => session.notify(method, params),
  end: () => socket.end(),
});
