// A session's messages come in the order in which they were sent, also after one was abandoned.
"use strict";
const assert = require("node:assert/strict");
const { own, range, receiveOne } = require("../place");

const COUNT = 10;

module.exports = async function sessionOrder(place) {
  const client = place.client();
  const sessionId = own("session");
  const sender = client.createSender(place.sessions);
  for (const body of range(COUNT)) await sender.sendMessages({ body, sessionId });
  const receiver = await client.acceptSession(place.sessions, sessionId);
  await receiver.abandonMessage(await receiveOne(receiver));
  const found = [];
  while (found.length < COUNT) {
    const message = await receiveOne(receiver);
    found.push(message.body);
    await receiver.completeMessage(message);
  }
  assert.deepEqual(found, range(COUNT));
};
