// A list of messages is sent at once, and all arrive.
"use strict";
const assert = require("node:assert/strict");
const { completeAll, own, range, receive } = require("../place");

module.exports = async function sendList(place) {
  const client = place.client();
  const ids = range(10).map(() => own("id"));
  await client.createSender(place.queue).sendMessages(ids.map((messageId) => ({ body: "listed", messageId })));
  const receiver = client.createReceiver(place.queue);
  const messages = await receive(receiver, ids.length);
  await completeAll(receiver, messages);
  assert.deepEqual(messages.map((message) => message.messageId).sort(), ids.sort());
};
