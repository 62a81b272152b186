// SPDX-License-Identifier: Apache-2.0
// What the two drivers of npm's packages have in common (see stock.py): `client` is the library in a form that is the same for both.
const readline = require("node:readline");

exports.pump = async function (client) {
  const arrived = [];
  let wake = () => {};
  const arrive = (message, response) => {
    arrived.push([message, response]);
    wake();
  };
  client.emitter.on("request", (method, params, response) => arrive(["request", method, params], response));
  client.emitter.on("notification", (method, params) => arrive(["notification", method, params]));

  const operations = {
    request: (method, params) => new Promise((resolve) => client.request(method, params, (error, result) =>
      resolve(error === null ? ["result", result] : ["error", error]))),
    notify: (method, params) => {
      client.notify(method, params);
      return ["sent"];
    },
    next: async () => {
      while (!arrived.length)
        await new Promise((resolve) => { wake = resolve; });
      const [message, response] = arrived.shift();
      if (response)
        response.send(message[2]);
      return message;
    },
  };

  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [operation, ...args] = client.decode(Buffer.from(line, "hex"));
    process.stdout.write(client.encode(await operations[operation](...args)).toString("hex") + "\n");
  }
  client.end();
};
