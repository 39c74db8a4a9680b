// One message is sent and arrives.
"use strict";
const assert = require("node:assert/strict");
const { own, receiveOne } = require("../place");

module.exports = async function sendSingle(place) {
  const client = place.client();
  const body = own("body");
  await client.createSender(place.queue).sendMessages({ body });
  const receiver = client.createReceiver(place.queue);
  const message = await receiveOne(receiver);
  assert.equal(message.body, body);
  assert.ok(message.messageId, "the service gives an id to a message that has none");
  await receiver.completeMessage(message);
};
