// A second message with the id of the first is accepted and dropped; each partition key has its own ids.
"use strict";
const assert = require("node:assert/strict");
const { completeAll, nothingComes, own, receive } = require("../place");

module.exports = async function duplicateDetection(place) {
  const client = place.client();
  const messageId = own("id");
  const sender = client.createSender(place.brief);
  for (const partitionKey of [undefined, undefined, "one", "one", "another"]) {
    await sender.sendMessages({ body: `${partitionKey}`, messageId, partitionKey });
  }
  const receiver = client.createReceiver(place.brief);
  const messages = await receive(receiver, 3);
  await completeAll(receiver, messages);
  await nothingComes(receiver);
  assert.deepEqual(messages.map((message) => message.body).sort(), ["another", "one", "undefined"]);
};
