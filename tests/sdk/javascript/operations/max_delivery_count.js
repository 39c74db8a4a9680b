// After as many deliveries as the queue allows, three here, a message is dead-lettered.
"use strict";
const assert = require("node:assert/strict");
const { nothingComes, receiveOne } = require("../place");

module.exports = async function maxDeliveryCount(place) {
  const client = place.client();
  await client.createSender(place.queue).sendMessages({ body: "never right" });
  const receiver = client.createReceiver(place.queue);
  for (const earlier of [0, 1, 2]) {
    const message = await receiveOne(receiver);
    assert.equal(message.deliveryCount, earlier);
    await receiver.abandonMessage(message);
  }
  await nothingComes(receiver);
  const deadLetters = client.createReceiver(place.queue, { subQueueType: "deadLetter" });
  const dead = await receiveOne(deadLetters);
  assert.equal(dead.deadLetterReason, "MaxDeliveryCountExceeded");
  await deadLetters.completeMessage(dead);
};
