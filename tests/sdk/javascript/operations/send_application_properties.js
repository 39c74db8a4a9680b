// Application properties of every type that the SDK writes arrive as they were.
"use strict";
const assert = require("node:assert/strict");
const { receiveOne } = require("../place");

const PROPERTIES = {
  text: "größer",
  empty: "",
  true: true,
  false: false,
  small: 7,
  negative: -1,
  large: 2 ** 40,
  real: 2.5,
  time: new Date("2026-11-21T12:30:00Z"),
  nothing: null,
};

module.exports = async function sendApplicationProperties(place) {
  const client = place.client();
  await client.createSender(place.queue).sendMessages({ body: "typed", applicationProperties: PROPERTIES });
  const receiver = client.createReceiver(place.queue, { skipConvertingDate: true });
  const message = await receiveOne(receiver);
  await receiver.completeMessage(message);
  assert.deepEqual(message.applicationProperties, PROPERTIES);
};
