// A batch whose messages have different keys is refused whole.
"use strict";
const { isEmpty, refused } = require("../place");

module.exports = async function mixedKeysRefused(place) {
  const client = place.client({ retryOptions: { maxRetries: 0 } });
  const messages = ["one", "another"].map((partitionKey) => ({ body: "mixed", partitionKey }));
  await refused(client.createSender(place.queue).sendMessages(messages));
  await isEmpty(client.createReceiver(place.queue));
};
