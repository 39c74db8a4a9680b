// A receive that waits is woken by a message that comes.
"use strict";
const assert = require("node:assert/strict");
const { sleep } = require("../place");

module.exports = async function receiveWaiting(place) {
  const client = place.client();
  const receiver = client.createReceiver(place.queue);
  const receiving = receiver.receiveMessages(1, { maxWaitTimeInMs: 20_000 });
  await sleep(1500);
  await client.createSender(place.queue).sendMessages({ body: "wake up" });
  const sentAt = performance.now();
  const messages = await receiving;
  assert.ok(performance.now() - sentAt < 3000, `it came ${performance.now() - sentAt} ms after it was sent`);
  assert.equal(messages.length, 1);
  await receiver.completeMessage(messages[0]);
};
