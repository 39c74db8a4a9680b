// A scheduled message that is cancelled never comes; cancelling what is not scheduled is told.
"use strict";
const { EXACT, isEmpty, nothingComes, refused } = require("../place");

module.exports = async function cancelScheduled(place) {
  const client = place.client({ retryOptions: { maxRetries: 0 } });
  const sender = client.createSender(place.queue);
  const at = new Date(Date.now() + 2000);
  const numbers = await sender.scheduleMessages([{ body: "never", ...EXACT }, { body: "nor this", ...EXACT }], at);
  await sender.cancelScheduledMessages(numbers);
  await refused(sender.cancelScheduledMessages(numbers), "MessageNotFound");
  const receiver = client.createReceiver(place.queue);
  await isEmpty(receiver);
  await nothingComes(receiver, 3000);
};
