// Whoever goes on after a session's lock has run out is told that it was lost, and its message comes again, counted.
"use strict";
const assert = require("node:assert/strict");
const { own, receiveOne, refused, sleep } = require("../place");

const LOCK_MS = 10_000;

module.exports = async function sessionLockLost(place) {
  const client = place.client({ retryOptions: { maxRetries: 0 } });
  const sessionId = own("session");
  await client.createSender(place.sessions).sendMessages({ body: "held too long", sessionId });
  const holder = await client.acceptSession(place.sessions, sessionId, { maxAutoLockRenewalDurationInMs: 0 });
  const held = await receiveOne(holder);
  await sleep(LOCK_MS + 1000);
  await refused(holder.renewSessionLock(), "SessionLockLost");
  await refused(holder.completeMessage(held), "SessionLockLost");
  await holder.close();
  const receiver = await client.acceptSession(place.sessions, sessionId);
  const message = await receiveOne(receiver);
  assert.equal(message.deliveryCount, 1);
  await receiver.completeMessage(message);
};
