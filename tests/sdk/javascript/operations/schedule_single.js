// A scheduled message comes at its time, not before.
"use strict";
const assert = require("node:assert/strict");
const { nothingComes, own, receiveOne } = require("../place");

module.exports = async function scheduleSingle(place) {
  const client = place.client();
  const body = own("scheduled");
  const at = Date.now() + 3000;
  const [number] = await client.createSender(place.queue).scheduleMessages({ body }, new Date(at));
  assert.ok(number.gt(0));
  const receiver = client.createReceiver(place.queue);
  await nothingComes(receiver);
  const message = await receiveOne(receiver);
  assert.ok(Date.now() >= at - 100);
  assert.equal(message.body, body);
  assert.ok(message.scheduledEnqueueTimeUtc <= message.enqueuedTimeUtc);
  await receiver.completeMessage(message);
};
