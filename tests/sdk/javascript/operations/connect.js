// A client opens and closes, with a sender and a receiver.
"use strict";

module.exports = async function connect(place) {
  const client = place.client();
  await client.createSender(place.queue).createMessageBatch(); // it is this that opens the link
  await client.createReceiver(place.queue).peekMessages(1);
  await client.close();
};
