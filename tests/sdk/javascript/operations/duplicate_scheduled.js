// A scheduled message counts when duplicates are looked for.
"use strict";
const assert = require("node:assert/strict");
const { nothingComes, own, receiveOne } = require("../place");

module.exports = async function duplicateScheduled(place) {
  const client = place.client();
  const messageId = own("id");
  const sender = client.createSender(place.brief);
  await sender.scheduleMessages({ body: "scheduled", messageId }, new Date(Date.now() + 1000));
  await sender.sendMessages({ body: "sent", messageId });
  const receiver = client.createReceiver(place.brief);
  const message = await receiveOne(receiver);
  assert.equal(message.body, "scheduled");
  await receiver.completeMessage(message);
  await nothingComes(receiver);
};
