// The dead-letter queue of a queue with sessions is read without sessions.
"use strict";
const assert = require("node:assert/strict");
const { own, receiveOne } = require("../place");

module.exports = async function sessionDeadLetter(place) {
  const client = place.client();
  const sessionId = own("session");
  await client.createSender(place.sessions).sendMessages({ body: "unwanted", sessionId });
  const receiver = await client.acceptSession(place.sessions, sessionId);
  await receiver.deadLetterMessage(await receiveOne(receiver), { deadLetterReason: "why" });
  await receiver.close();
  const deadLetters = client.createReceiver(place.sessions, { subQueueType: "deadLetter" });
  const dead = await receiveOne(deadLetters);
  assert.deepEqual([dead.body, dead.sessionId, dead.deadLetterReason], ["unwanted", sessionId, "why"]);
  await deadLetters.completeMessage(dead);
};
