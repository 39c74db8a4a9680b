// Every property that the service names arrives as it was sent, with those that the service adds.
"use strict";
const assert = require("node:assert/strict");
const { own, receiveOne } = require("../place");

module.exports = async function sendProperties(place) {
  const client = place.client();
  const sent = {
    body: "all of them",
    messageId: own("id"),
    contentType: "text/plain; charset=utf-8",
    correlationId: "correlated",
    subject: "subject",
    to: "to",
    replyTo: "reply-to",
    replyToSessionId: "reply-to-session",
    partitionKey: "key",
    timeToLive: 600_000,
  };
  await client.createSender(place.queue).sendMessages(sent);
  const receiver = client.createReceiver(place.queue);
  const got = await receiveOne(receiver);
  await receiver.completeMessage(got);
  for (const [name, value] of Object.entries(sent)) assert.deepEqual(got[name], value, name);
  assert.ok(got.sequenceNumber.gt(0));
  assert.ok(Math.abs(got.enqueuedTimeUtc - Date.now()) < 60_000);
  assert.equal(got.expiresAtUtc - got.enqueuedTimeUtc, 600_000);
  assert.ok(got.lockedUntilUtc > new Date());
  assert.equal(got.deliveryCount, 0);
  assert.ok(got.lockToken);
};
