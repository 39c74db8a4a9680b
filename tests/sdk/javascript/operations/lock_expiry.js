// A message whose lock runs out comes again, with one delivery more.
"use strict";
const assert = require("node:assert/strict");
const { receiveOne } = require("../place");

module.exports = async function lockExpiry(place) {
  const client = place.client();
  await client.createSender(place.brief).sendMessages({ body: "again" });
  const first = await receiveOne(client.createReceiver(place.brief, { maxAutoLockRenewalDurationInMs: 0 }));
  const receiver = client.createReceiver(place.brief);
  const second = await receiveOne(receiver, 20_000);
  assert.deepEqual([first.deliveryCount, second.deliveryCount], [0, 1]);
  assert.ok(second.sequenceNumber.eq(first.sequenceNumber));
  await receiver.completeMessage(second);
};
