// Messages with one key keep their order, in one partition, and show their key.
"use strict";
const assert = require("node:assert/strict");
const { completeAll, own, range, receive } = require("../place");

const COUNT = 10;

module.exports = async function sendPartitionKey(place) {
  const client = place.client();
  const partitionKey = own("key");
  const sender = client.createSender(place.queue);
  for (const body of range(COUNT)) await sender.sendMessages({ body, partitionKey });
  const receiver = client.createReceiver(place.queue);
  const messages = await receive(receiver, COUNT);
  await completeAll(receiver, messages);
  assert.deepEqual(messages.map((message) => message.body), range(COUNT));
  assert.ok(messages.every((message) => message.partitionKey === partitionKey));
  assert.equal(new Set(messages.map((message) => message.sequenceNumber.shiftRight(48).toNumber())).size, 1);
};
