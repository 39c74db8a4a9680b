// A peek by the receiver of a session shows that session's messages only.
"use strict";
const assert = require("node:assert/strict");
const { START, completeAll, own, range, receive } = require("../place");

const COUNT = 3;

module.exports = async function sessionPeek(place) {
  const client = place.client();
  const sessions = [own("session"), own("session")];
  const sender = client.createSender(place.sessions);
  for (const body of range(COUNT)) {
    for (const sessionId of sessions) await sender.sendMessages({ body, sessionId });
  }
  for (const sessionId of sessions) {
    const receiver = await client.acceptSession(place.sessions, sessionId);
    const peeked = await receiver.peekMessages(10, START);
    const wanted = range(COUNT).map((body) => [body, sessionId]);
    assert.deepEqual(peeked.map((message) => [message.body, message.sessionId]), wanted);
    await completeAll(receiver, await receive(receiver, COUNT));
    await receiver.close();
  }
};
