// A peek shows messages and neither locks nor removes them.
"use strict";
const assert = require("node:assert/strict");
const { START, completeAll, isEmpty, range, receive } = require("../place");

const COUNT = 3;

module.exports = async function peek(place) {
  const client = place.client();
  await client.createSender(place.queue).sendMessages(range(COUNT).map((body) => ({ body })));
  const receiver = client.createReceiver(place.queue);
  for (let times = 0; times < 2; times++) {
    const peeked = await receiver.peekMessages(10, START);
    assert.deepEqual(peeked.map((message) => message.body), range(COUNT));
  }
  const messages = await receive(receiver, COUNT);
  assert.ok(messages.every((message) => message.deliveryCount === 0));
  await completeAll(receiver, messages);
  await isEmpty(receiver);
};
