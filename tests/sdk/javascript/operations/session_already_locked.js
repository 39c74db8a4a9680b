// A session that another receiver holds cannot be accepted, and can be once that one has closed.
"use strict";
const assert = require("node:assert/strict");
const { own, receiveOne, refused } = require("../place");

module.exports = async function sessionAlreadyLocked(place) {
  const client = place.client({ retryOptions: { maxRetries: 0 } });
  const sessionId = own("session");
  await client.createSender(place.sessions).sendMessages({ body: "held", sessionId });
  const holder = await client.acceptSession(place.sessions, sessionId);
  await refused(client.acceptSession(place.sessions, sessionId), "SessionCannotBeLocked");
  await holder.close();
  const receiver = await client.acceptSession(place.sessions, sessionId);
  const message = await receiveOne(receiver);
  assert.equal(message.deliveryCount, 0);
  await receiver.completeMessage(message);
};
