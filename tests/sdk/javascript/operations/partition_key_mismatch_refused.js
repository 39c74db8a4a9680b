// A session id and a different partition key on one message are refused by the service.
"use strict";
const { own, refused } = require("../place");

module.exports = async function partitionKeyMismatchRefused(place) {
  const client = place.client({ retryOptions: { maxRetries: 0 } });
  const pastTheSdk = {
    body: "refused",
    bodyType: "data",
    properties: { groupId: own("session") },
    messageAnnotations: { "x-opt-partition-key": "another" },
  };
  await refused(client.createSender(place.sessions).sendMessages(pastTheSdk));
};
