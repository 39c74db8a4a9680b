// A deferred message is received by its sequence number only.
"use strict";
const assert = require("node:assert/strict");
const { EXACT, isEmpty, nothingComes, own, receiveOne } = require("../place");

module.exports = async function defer(place) {
  const client = place.client();
  const body = own("later");
  await client.createSender(place.queue).sendMessages({ body, ...EXACT });
  const receiver = client.createReceiver(place.queue);
  const message = await receiveOne(receiver);
  await receiver.deferMessage(message);
  await nothingComes(receiver);
  const [deferred] = await receiver.receiveDeferredMessages(message.sequenceNumber);
  assert.equal(deferred.body, body);
  assert.ok(deferred.lockToken);
  await receiver.completeMessage(deferred);
  await isEmpty(receiver);
};
