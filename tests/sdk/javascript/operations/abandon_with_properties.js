// An abandoned message may be given changed properties.
"use strict";
const assert = require("node:assert/strict");
const { receiveOne } = require("../place");

module.exports = async function abandonWithProperties(place) {
  const client = place.client();
  const sender = client.createSender(place.queue);
  await sender.sendMessages({ body: "again", applicationProperties: { kept: "yes", tries: 0 } });
  const receiver = client.createReceiver(place.queue);
  await receiver.abandonMessage(await receiveOne(receiver), { tries: 1, added: "now" });
  const message = await receiveOne(receiver);
  await receiver.completeMessage(message);
  assert.deepEqual(message.applicationProperties, { kept: "yes", tries: 1, added: "now" });
};
