// The empty text is a session's id like any other.
"use strict";
const assert = require("node:assert/strict");
const { receiveOne } = require("../place");

module.exports = async function sessionEmptyId(place) {
  const client = place.client();
  await client.createSender(place.sessions).sendMessages({ body: "empty", sessionId: "" });
  const receiver = await client.acceptSession(place.sessions, "");
  assert.equal(receiver.sessionId, "");
  const message = await receiveOne(receiver);
  assert.deepEqual([message.body, message.sessionId], ["empty", ""]);
  await receiver.setSessionState("its own");
  assert.equal(await receiver.getSessionState(), "its own");
  await receiver.setSessionState(null);
  await receiver.completeMessage(message);
};
