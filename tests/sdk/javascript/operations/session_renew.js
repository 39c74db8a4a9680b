// A session's lock is renewed as a whole, beyond the queue's lock duration.
"use strict";
const assert = require("node:assert/strict");
const { own, receiveOne, sleep } = require("../place");

const LOCK_MS = 10_000;

module.exports = async function sessionRenew(place) {
  const client = place.client();
  const sessionId = own("session");
  await client.createSender(place.sessions).sendMessages({ body: "held", sessionId });
  const receiver = await client.acceptSession(place.sessions, sessionId, { maxAutoLockRenewalDurationInMs: 0 });
  assert.ok(receiver.sessionLockedUntilUtc > new Date());
  const message = await receiveOne(receiver);
  for (let times = 0; times < 3; times++) {
    await sleep(LOCK_MS * 0.4);
    const until = await receiver.renewSessionLock();
    assert.ok(until - Date.now() > LOCK_MS / 2, `${until}`);
  }
  await receiver.completeMessage(message);
};
