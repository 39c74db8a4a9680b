// A policy with the right to listen receives, and may not send.
"use strict";
const { receiveOne, refused } = require("../place");

module.exports = async function listenOnlyKey(place) {
  await place.client().createSender(place.queue).sendMessages({ body: "for whoever listens" });
  const client = place.client({ connection: place.connection_listen, retryOptions: { maxRetries: 0 } });
  const receiver = client.createReceiver(place.queue);
  await receiver.completeMessage(await receiveOne(receiver));
  await refused(client.createSender(place.queue).sendMessages({ body: "refused" }), "UnauthorizedAccess");
};
