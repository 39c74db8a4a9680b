// A queue with sessions refuses a receiver without one.
"use strict";
const { refused } = require("../place");

module.exports = async function sessionReceiverRequired(place) {
  const client = place.client({ retryOptions: { maxRetries: 0 } });
  await refused(client.createReceiver(place.sessions).receiveMessages(1, { maxWaitTimeInMs: 2000 }));
};
