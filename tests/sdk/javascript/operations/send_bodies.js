// Every kind of body: data, none, a value, a sequence.
"use strict";
const assert = require("node:assert/strict");
const { receiveOne } = require("../place");

const BODIES = [
  ["data", Buffer.from("one")],
  ["data", Buffer.alloc(0)],
  ["value", { a: 1, b: ["c", null] }],
  ["value", null],
  ["sequence", ["a", 1, { b: 2 }]],
];

module.exports = async function sendBodies(place) {
  const client = place.client();
  const sender = client.createSender(place.queue);
  const receiver = client.createReceiver(place.queue, { skipParsingBodyAsJson: true });
  for (const [bodyType, body] of BODIES) {
    await sender.sendMessages({ body, bodyType });
    const message = await receiveOne(receiver);
    await receiver.completeMessage(message);
    assert.equal(message._rawAmqpMessage.bodyType, bodyType);
    assert.deepEqual(message.body, body, bodyType);
  }
};
