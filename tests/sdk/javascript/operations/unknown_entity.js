// A queue that does not exist is named as such, to senders and to receivers.
"use strict";
const { refused } = require("../place");

module.exports = async function unknownEntity(place) {
  const client = place.client();
  await refused(client.createSender(place.missing).sendMessages({ body: "nowhere" }), "MessagingEntityNotFound");
  const receiver = client.createReceiver(place.missing);
  await refused(receiver.receiveMessages(1, { maxWaitTimeInMs: 5000 }), "MessagingEntityNotFound");
};
