// A queue is deleted with the messages that it holds; what is not there cannot be found, changed or deleted.
"use strict";
const assert = require("node:assert/strict");
const { refused } = require("../place");

module.exports = async function deleteQueue(place) {
  const client = place.administrationClient();
  const queue = await client.getQueue(place.administered);
  assert.equal(await client.queueExists(place.administered), true);
  await client.deleteQueue(place.administered);
  assert.equal(await client.queueExists(place.administered), false);
  const missing = "MessageEntityNotFoundError";
  await refused(client.getQueue(place.administered), missing);
  await refused(client.updateQueue(queue), missing);
  await refused(client.deleteQueue(place.administered), missing);
  await refused(client.getQueueRuntimeProperties(place.missing), missing);
};
