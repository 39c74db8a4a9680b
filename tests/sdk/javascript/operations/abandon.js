// An abandoned message comes again at once, with one delivery more.
"use strict";
const assert = require("node:assert/strict");
const { receiveOne } = require("../place");

module.exports = async function abandon(place) {
  const client = place.client();
  await client.createSender(place.queue).sendMessages({ body: "again" });
  const receiver = client.createReceiver(place.queue);
  const first = await receiveOne(receiver);
  await receiver.abandonMessage(first);
  const second = await receiveOne(receiver);
  assert.deepEqual([first.deliveryCount, second.deliveryCount], [0, 1]);
  assert.ok(second.sequenceNumber.eq(first.sequenceNumber));
  await receiver.completeMessage(second);
};
