// A queue without sessions refuses the receiver of a session.
"use strict";
const { refused } = require("../place");

module.exports = async function sessionReceiverRefused(place) {
  const client = place.client({ retryOptions: { maxRetries: 0 } });
  await refused(client.acceptSession(place.queue, "any"));
};
