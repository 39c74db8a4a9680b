// A message above the limit is refused, and the sender goes on.
"use strict";
const assert = require("node:assert/strict");
const { nothingComes, receiveOne, refused } = require("../place");

module.exports = async function sendTooLarge(place) {
  const client = place.client();
  const sender = client.createSender(place.queue);
  await refused(sender.sendMessages({ body: Buffer.alloc(2_000_000) }), "MessageSizeExceeded");
  await sender.sendMessages({ body: "small" });
  const receiver = client.createReceiver(place.queue);
  const message = await receiveOne(receiver);
  assert.equal(message.body, "small");
  await receiver.completeMessage(message);
  await nothingComes(receiver);
};
