// A message that is sent with a time to be enqueued comes at that time.
"use strict";
const assert = require("node:assert/strict");
const { nothingComes, receiveOne } = require("../place");

module.exports = async function scheduleByProperty(place) {
  const client = place.client();
  const at = Date.now() + 3000;
  await client.createSender(place.queue).sendMessages({ body: "later", scheduledEnqueueTimeUtc: new Date(at) });
  const receiver = client.createReceiver(place.queue);
  await nothingComes(receiver);
  const message = await receiveOne(receiver);
  assert.ok(Date.now() >= at - 100);
  await receiver.completeMessage(message);
};
