// A renewed lock holds longer, again and again, beyond the queue's lock duration.
"use strict";
const assert = require("node:assert/strict");
const { isEmpty, receiveOne, sleep } = require("../place");

const LOCK_MS = 5000;

module.exports = async function renewMessageLock(place) {
  const client = place.client();
  await client.createSender(place.brief).sendMessages({ body: "held" });
  const receiver = client.createReceiver(place.brief, { maxAutoLockRenewalDurationInMs: 0 });
  const message = await receiveOne(receiver);
  const began = Date.now();
  while (Date.now() - began < LOCK_MS + 1500) {
    const until = await receiver.renewMessageLock(message);
    assert.ok(until - Date.now() > LOCK_MS - 2000, `${until}`);
    await sleep(1000);
  }
  await receiver.completeMessage(message);
  await isEmpty(receiver);
};
