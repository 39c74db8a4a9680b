// A peek shows whether a message is active, deferred or scheduled.
"use strict";
const assert = require("node:assert/strict");
const { START, receiveOne } = require("../place");

module.exports = async function peekStates(place) {
  const client = place.client();
  const sender = client.createSender(place.queue);
  const receiver = client.createReceiver(place.queue);
  await sender.sendMessages({ body: "deferred", partitionKey: "one" });
  const deferred = await receiveOne(receiver);
  await receiver.deferMessage(deferred);
  await sender.sendMessages({ body: "active", partitionKey: "one" });
  const later = new Date(Date.now() + 600_000);
  const numbers = await sender.scheduleMessages({ body: "scheduled", partitionKey: "one" }, later);
  const peeked = await receiver.peekMessages(10, START);
  const states = Object.fromEntries(peeked.map((message) => [message.body, message.state]));
  assert.deepEqual(states, { deferred: "deferred", active: "active", scheduled: "scheduled" });
  await sender.cancelScheduledMessages(numbers);
  const [back] = await receiver.receiveDeferredMessages(deferred.sequenceNumber);
  await receiver.completeMessage(back);
  await receiver.completeMessage(await receiveOne(receiver));
};
