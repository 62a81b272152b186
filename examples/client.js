#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Spawns a counter (or the actor that is named), tells it twice, asks it once and prints 3; or what was refused.
const net = require("node:net");
const { decodeMultiStream, encode } = require("@msgpack/msgpack");

const daemon = net.connect(process.env.TROUPE_SOCKET);
const answers = decodeMultiStream(daemon);

async function request(msgid, method, ...params) {
  daemon.write(encode([0, msgid, method, params]));
  const { value, done } = await answers.next();
  if (done)
    throw new Error("the daemon closed the connection");
  const [, , error, result] = value;
  if (error)
    throw new Error(`${method}: ${error.code}: ${error.message}`);
  return result;
}

async function main() {
  await request(0, "hello", { errors: "map" });
  const counter = await request(1, "spawn", process.argv[2] ?? "counter", []);
  await request(2, "send", counter, "bump", [2]);
  await request(3, "send", counter, "bump", []);
  console.log(await request(4, "ask", counter, "total", []));
}

main().catch((error) => { console.error(error.message); process.exitCode = 1; }).finally(() => daemon.end());
