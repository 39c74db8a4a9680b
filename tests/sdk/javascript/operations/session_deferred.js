// Within a session a message is deferred, received by its number and completed.
"use strict";
const assert = require("node:assert/strict");
const { isEmpty, nothingComes, own, receiveOne } = require("../place");

module.exports = async function sessionDeferred(place) {
  const client = place.client();
  const sessionId = own("session");
  await client.createSender(place.sessions).sendMessages({ body: "later", sessionId });
  const receiver = await client.acceptSession(place.sessions, sessionId);
  const message = await receiveOne(receiver);
  await receiver.deferMessage(message);
  await nothingComes(receiver);
  const [deferred] = await receiver.receiveDeferredMessages(message.sequenceNumber);
  assert.deepEqual([deferred.body, deferred.sessionId], ["later", sessionId]);
  await receiver.completeMessage(deferred);
  await isEmpty(receiver);
};
