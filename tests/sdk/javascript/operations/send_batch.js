// The SDK's batch takes messages until it is full, is sent, and all of them arrive.
"use strict";
const assert = require("node:assert/strict");
const { completeAll, receive } = require("../place");

const BODY = "x".repeat(10_000);

module.exports = async function sendBatch(place) {
  const client = place.client();
  const sender = client.createSender(place.queue);
  const batch = await sender.createMessageBatch();
  while (batch.count < 1000 && batch.tryAddMessage({ body: BODY }));
  assert.ok(batch.count >= 20 && batch.count < 1000, `a batch takes ${batch.count} messages of 10 KB`);
  await sender.sendMessages(batch);
  const receiver = client.createReceiver(place.queue);
  const messages = await receive(receiver, batch.count, 30_000);
  assert.ok(messages.every((message) => message.body === BODY));
  await completeAll(receiver, messages);
};
