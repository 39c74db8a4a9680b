// A key that is not the policy's is refused.
"use strict";
const { refused } = require("../place");

module.exports = async function wrongKey(place) {
  const client = place.client({ connection: place.connection_wrong_key, retryOptions: { maxRetries: 0 } });
  await refused(client.createSender(place.queue).sendMessages({ body: "refused" }), "UnauthorizedAccess");
};
