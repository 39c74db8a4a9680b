// A message that nobody took in time is in the dead-letter queue, where its queue says so.
"use strict";
const assert = require("node:assert/strict");
const { nothingComes, own, receiveOne } = require("../place");

module.exports = async function timeToLive(place) {
  const client = place.client();
  const body = own("short");
  await client.createSender(place.queue).sendMessages({ body, timeToLive: 1000 });
  const deadLetters = client.createReceiver(place.queue, { subQueueType: "deadLetter" });
  const dead = await receiveOne(deadLetters);
  assert.deepEqual([dead.body, dead.deadLetterReason], [body, "TTLExpiredException"]);
  await deadLetters.completeMessage(dead);
  await nothingComes(client.createReceiver(place.queue));
};
