// Whoever settles after the lock has run out is told that it was lost.
"use strict";
const { receiveOne, refused, sleep } = require("../place");

module.exports = async function settleAfterExpiry(place) {
  const client = place.client({ retryOptions: { maxRetries: 0 } });
  await client.createSender(place.brief).sendMessages({ body: "too late" });
  const receiver = client.createReceiver(place.brief, { maxAutoLockRenewalDurationInMs: 0 });
  const message = await receiveOne(receiver);
  await sleep(6000);
  await refused(receiver.completeMessage(message), "MessageLockLost");
  await refused(receiver.renewMessageLock(message), "MessageLockLost");
  await receiver.completeMessage(await receiveOne(receiver));
};
