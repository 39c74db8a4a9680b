// The next session that has messages is accepted without a name, each once.
"use strict";
const assert = require("node:assert/strict");
const { own, range, receiveOne } = require("../place");

const COUNT = 3;

module.exports = async function sessionNext(place) {
  const client = place.client();
  const wanted = range(COUNT).map(() => own("session"));
  const sender = client.createSender(place.sessions);
  for (const sessionId of wanted) await sender.sendMessages({ body: sessionId, sessionId });
  const found = [];
  for (let times = 0; times < COUNT; times++) {
    const receiver = await client.acceptNextSession(place.sessions);
    const message = await receiveOne(receiver);
    assert.equal(message.sessionId, receiver.sessionId);
    await receiver.completeMessage(message);
    found.push(receiver.sessionId);
  }
  assert.deepEqual(found.sort(), wanted.sort());
};
