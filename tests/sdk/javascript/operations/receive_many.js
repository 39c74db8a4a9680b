// Three hundred messages in all partitions come, each once, in receives of up to fifty.
"use strict";
const assert = require("node:assert/strict");
const { nothingComes, range, sorted } = require("../place");

const LISTS = 30;
const IN_EACH = 10;

module.exports = async function receiveMany(place) {
  const client = place.client();
  const sender = client.createSender(place.queue);
  for (const list of range(LISTS)) {
    await sender.sendMessages(range(IN_EACH).map((number) => ({ body: list * IN_EACH + number })));
  }
  const receiver = client.createReceiver(place.queue);
  const found = [];
  while (found.length < LISTS * IN_EACH) {
    const messages = await receiver.receiveMessages(50, { maxWaitTimeInMs: 10_000 });
    assert.ok(messages.length > 0, `after ${found.length} of ${LISTS * IN_EACH} nothing came`);
    found.push(...messages.map((message) => message.body));
    await Promise.all(messages.map((message) => receiver.completeMessage(message)));
  }
  await nothingComes(receiver);
  assert.deepEqual(sorted(found), range(LISTS * IN_EACH));
};
