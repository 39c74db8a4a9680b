// Several messages are scheduled at once; each has a sequence number.
"use strict";
const assert = require("node:assert/strict");
const { completeAll, range, receive, sorted } = require("../place");

const COUNT = 5;

module.exports = async function scheduleMany(place) {
  const client = place.client();
  const at = new Date(Date.now() + 2000);
  const numbers = await client.createSender(place.queue).scheduleMessages(range(COUNT).map((body) => ({ body })), at);
  assert.equal(new Set(numbers.map(String)).size, COUNT);
  const receiver = client.createReceiver(place.queue);
  const messages = await receive(receiver, COUNT);
  await completeAll(receiver, messages);
  assert.deepEqual(sorted(messages.map((message) => message.body)), range(COUNT));
};
