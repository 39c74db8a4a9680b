// In this mode a message is gone once it was received.
"use strict";
const assert = require("node:assert/strict");
const { isEmpty, range, receive, sorted } = require("../place");

const COUNT = 5;

module.exports = async function receiveAndDelete(place) {
  const client = place.client();
  await client.createSender(place.queue).sendMessages(range(COUNT).map((body) => ({ body })));
  const receiver = client.createReceiver(place.queue, { receiveMode: "receiveAndDelete" });
  const messages = await receive(receiver, COUNT);
  assert.deepEqual(sorted(messages.map((message) => message.body)), range(COUNT));
  await isEmpty(receiver);
};
