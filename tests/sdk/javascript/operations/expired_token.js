// A shared access signature whose time is over is refused.
"use strict";
const { refused } = require("../place");

module.exports = async function expiredToken(place) {
  const client = place.client({ connection: place.connection_expired, retryOptions: { maxRetries: 0 } });
  await refused(client.createSender(place.queue).sendMessages({ body: "refused" }), "UnauthorizedAccess");
};
