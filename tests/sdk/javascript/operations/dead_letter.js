// A dead-lettered message is in the dead-letter queue, with reason, description and source.
"use strict";
const assert = require("node:assert/strict");
const { isEmpty, nothingComes, own, receiveOne } = require("../place");

module.exports = async function deadLetter(place) {
  const client = place.client();
  const body = own("unwanted");
  await client.createSender(place.queue).sendMessages({ body, applicationProperties: { kept: "yes" } });
  const receiver = client.createReceiver(place.queue);
  const why = { deadLetterReason: "the reason", deadLetterErrorDescription: "the words", added: 1 };
  await receiver.deadLetterMessage(await receiveOne(receiver), why);
  await nothingComes(receiver);
  const deadLetters = client.createReceiver(place.queue, { subQueueType: "deadLetter" });
  const dead = await receiveOne(deadLetters);
  assert.equal(dead.body, body);
  assert.deepEqual([dead.deadLetterReason, dead.deadLetterErrorDescription], ["the reason", "the words"]);
  assert.equal(dead.applicationProperties.kept, "yes");
  assert.equal(dead.applicationProperties.added, 1);
  await deadLetters.completeMessage(dead);
  await isEmpty(deadLetters);
};
