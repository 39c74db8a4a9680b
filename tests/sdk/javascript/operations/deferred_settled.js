// A deferred message that was received can be abandoned (and stays deferred), renewed, dead-lettered and completed.
"use strict";
const assert = require("node:assert/strict");
const { EXACT, receive, receiveOne } = require("../place");

module.exports = async function deferredSettled(place) {
  const client = place.client();
  await client.createSender(place.queue).sendMessages(["first", "second"].map((body) => ({ body, ...EXACT })));
  const receiver = client.createReceiver(place.queue);
  const messages = await receive(receiver, 2);
  for (const message of messages) await receiver.deferMessage(message);
  const numbers = messages.map((message) => message.sequenceNumber);
  const [first, second] = await receiver.receiveDeferredMessages(numbers);
  await receiver.abandonMessage(first);
  await receiver.renewMessageLock(second);
  const why = { deadLetterReason: "deferred", deadLetterErrorDescription: "and then not wanted" };
  await receiver.deadLetterMessage(second, why);
  const [again] = await receiver.receiveDeferredMessages(first.sequenceNumber);
  await receiver.completeMessage(again);
  const deadLetters = client.createReceiver(place.queue, { subQueueType: "deadLetter" });
  const dead = await receiveOne(deadLetters);
  await deadLetters.completeMessage(dead);
  assert.deepEqual([dead.body, dead.deadLetterReason], [second.body, "deferred"]);
};
