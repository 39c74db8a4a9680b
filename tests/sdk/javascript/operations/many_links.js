// Twenty senders and twenty receivers share one client and its connection.
"use strict";
const assert = require("node:assert/strict");
const { range, receiveOne, sorted } = require("../place");

const LINKS = 20;

module.exports = async function manyLinks(place) {
  const client = place.client();
  await Promise.all(range(LINKS).map((number) => client.createSender(place.queue).sendMessages({ body: number })));
  const bodies = await Promise.all(
    range(LINKS).map(async () => {
      const receiver = client.createReceiver(place.queue);
      const message = await receiveOne(receiver);
      await receiver.completeMessage(message);
      return message.body;
    }),
  );
  assert.deepEqual(sorted(bodies), range(LINKS));
};
