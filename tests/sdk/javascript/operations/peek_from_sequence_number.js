// A peek begins at a sequence number, and goes on where the last one ended.
"use strict";
const assert = require("node:assert/strict");
const { EXACT, completeAll, range, receive } = require("../place");

const COUNT = 6;

module.exports = async function peekFromSequenceNumber(place) {
  const client = place.client();
  await client.createSender(place.queue).sendMessages(range(COUNT).map((body) => ({ body, ...EXACT })));
  const receiver = client.createReceiver(place.queue);
  const numbers = (await receiver.peekMessages(COUNT)).map((message) => message.sequenceNumber);
  assert.equal(numbers.length, COUNT);
  for (const start of range(COUNT)) {
    const peeked = await receiver.peekMessages(2, { fromSequenceNumber: numbers[start] });
    const wanted = numbers.slice(start, start + 2);
    assert.deepEqual(peeked.map((message) => `${message.sequenceNumber}`), wanted.map(String));
  }
  await completeAll(receiver, await receive(receiver, COUNT));
};
