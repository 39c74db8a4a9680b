// A subscribed handler is given what is there and what comes later.
"use strict";
const assert = require("node:assert/strict");
const { range } = require("../place");

const COUNT = 5;

module.exports = async function receiveStreaming(place) {
  const client = place.client();
  const sender = client.createSender(place.queue);
  const receiver = client.createReceiver(place.queue);
  const found = [];
  await sender.sendMessages({ body: 0 });
  const enough = new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`only ${found} came`)), 20_000);
    receiver.subscribe({
      async processMessage(message) {
        found.push(message.body);
        if (found.length < COUNT) return sender.sendMessages({ body: found.length });
        clearTimeout(late);
        return resolve();
      },
      async processError(told) {
        reject(told.error);
      },
    });
  });
  await enough;
  await receiver.close(); // which waits until the last one is completed
  assert.deepEqual(found, range(COUNT));
};
