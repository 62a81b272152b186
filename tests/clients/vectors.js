// SPDX-License-Identifier: Apache-2.0
// The client in examples/ over the vectors: test_vectors_by_hand.py says how it is talked to.
const fs = require("node:fs");
const Module = require("node:module");
const net = require("node:net");
const path = require("node:path");
const readline = require("node:readline");
const { decode, encode } = require("@msgpack/msgpack");

const [file] = process.argv.splice(2, 1);
const client = new Module(file);

async function answerAll() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [target, handler, value] = line.split(" ");
    const answer = await client.exports(5, "ask", target, handler, [decode(Buffer.from(value, "hex"))]);
    console.log(Buffer.from(encode(answer)).toString("hex"));
  }
}

// Where the client hangs up, since it is done, it goes on here.
const connect = net.connect;
net.connect = (...where) => {
  const daemon = connect(...where), end = daemon.end.bind(daemon);
  daemon.end = () => answerAll().catch((error) => { console.error(error); process.exit(1); }).finally(end);
  return daemon;
};

client.filename = file;
client.paths = Module._nodeModulePaths(path.dirname(file));
client._compile(`${fs.readFileSync(file, "utf8")}\nmodule.exports = request;`, file);
