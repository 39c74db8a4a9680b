// A partitioned queue is made, shows 16 times its size and takes messages at once; a second one of its name is refused.
"use strict";
const assert = require("node:assert/strict");
const { range, refused } = require("../place");

module.exports = async function createPartitioned(place) {
  const client = place.administrationClient();
  const made = await client.createQueue(place.administered, {
    enablePartitioning: true,
    maxSizeInMegabytes: 1024,
    lockDuration: "PT30S",
    maxDeliveryCount: 7,
    userMetadata: "a < b & c",
  });
  assert.equal(made.maxSizeInMegabytes, 16 * 1024);
  await place.client().createSender(place.administered).sendMessages(range(3).map((body) => ({ body })));
  for (const name of [place.administered, place.administered.toLowerCase()]) {
    const found = await client.getQueue(name);
    assert.equal(found.name, place.administered);
    assert.equal(found.enablePartitioning, true);
    assert.equal(found.maxSizeInMegabytes, 16 * 1024);
    assert.equal(found.lockDuration, "PT30S");
    assert.equal(found.maxDeliveryCount, 7);
    assert.equal(found.userMetadata, "a < b & c");
    assert.equal(found.availabilityStatus, "Available");
  }
  await refused(client.createQueue(place.administered), "MessageEntityAlreadyExistsError");
};
