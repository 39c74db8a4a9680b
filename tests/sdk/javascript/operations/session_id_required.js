// A queue with sessions refuses a message that has no session id.
"use strict";
const { refused } = require("../place");

module.exports = async function sessionIdRequired(place) {
  const client = place.client({ retryOptions: { maxRetries: 0 } });
  await refused(client.createSender(place.sessions).sendMessages({ body: "of no session" }));
};
