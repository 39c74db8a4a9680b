// A peek over all partitions gives as many as were asked for, in the order of their sequence numbers.
"use strict";
const assert = require("node:assert/strict");
const { START, completeAll, range, receive, sorted } = require("../place");

const COUNT = 120;

module.exports = async function peekMany(place) {
  const client = place.client();
  const sender = client.createSender(place.queue);
  for (let start = 0; start < COUNT; start += 3) {
    await sender.sendMessages(range(3).map((number) => ({ body: start + number })));
  }
  const receiver = client.createReceiver(place.queue);
  const peeked = await receiver.peekMessages(100, START);
  assert.equal(peeked.length, 100);
  peeked.push(...(await receiver.peekMessages(100, { fromSequenceNumber: peeked.at(-1).sequenceNumber.add(1) })));
  for (const index of range(peeked.length - 1)) {
    // Or equal: rhea takes a little more than 2 ** 53 for a safe number, so that those of partition 32 lose a bit.
    assert.ok(peeked[index].sequenceNumber.lte(peeked[index + 1].sequenceNumber));
  }
  assert.deepEqual(sorted(peeked.map((message) => message.body)), range(COUNT));
  await completeAll(receiver, await receive(receiver, COUNT, 30_000));
};
