// A message that was completed does not come again.
"use strict";
const { isEmpty, nothingComes, receiveOne } = require("../place");

module.exports = async function receiveAndComplete(place) {
  const client = place.client();
  await client.createSender(place.queue).sendMessages({ body: "once" });
  const first = client.createReceiver(place.queue);
  await first.completeMessage(await receiveOne(first));
  await first.close();
  const second = client.createReceiver(place.queue);
  await nothingComes(second);
  await isEmpty(second);
};
