// A session that is accepted by name gives its own messages only.
"use strict";
const assert = require("node:assert/strict");
const { nothingComes, own, receiveOne } = require("../place");

module.exports = async function sessionNamed(place) {
  const client = place.client();
  const sessions = [own("session"), own("session")];
  const sender = client.createSender(place.sessions);
  for (const sessionId of sessions) await sender.sendMessages({ body: sessionId, sessionId });
  for (const sessionId of sessions) {
    const receiver = await client.acceptSession(place.sessions, sessionId);
    assert.equal(receiver.sessionId, sessionId);
    const message = await receiveOne(receiver);
    assert.deepEqual([message.body, message.sessionId], [sessionId, sessionId]);
    await receiver.completeMessage(message);
    await nothingComes(receiver);
    await receiver.close();
  }
};
