// Several senders and receivers at once: what was sent is received, each message once.
"use strict";
const assert = require("node:assert/strict");
const { range } = require("../place");

const SENDERS = 3;
const EACH = 40;
const RECEIVERS = 3;

module.exports = async function concurrentExactlyOnce(place) {
  const found = [];
  const deadline = Date.now() + 40_000;
  const sending = range(SENDERS).map(async (one) => {
    const sender = place.client().createSender(place.queue);
    for (const number of range(EACH)) await sender.sendMessages({ body: `${one}-${number}` });
  });
  const receiving = range(RECEIVERS).map(async () => {
    const receiver = place.client().createReceiver(place.queue);
    while (found.length < SENDERS * EACH && Date.now() < deadline) {
      for (const message of await receiver.receiveMessages(10, { maxWaitTimeInMs: 2000 })) {
        await receiver.completeMessage(message);
        found.push(message.body);
      }
    }
  });
  await Promise.all([...sending, ...receiving]);
  const sent = range(SENDERS).flatMap((one) => range(EACH).map((number) => `${one}-${number}`));
  assert.deepEqual(found.sort(), sent.sort());
};
