// What a queue holds is added up over its partitions.
"use strict";
const assert = require("node:assert/strict");
const { sleep } = require("../place");

module.exports = async function runtimeCounts(place) {
  const client = place.administrationClient();
  const deadline = Date.now() + 30_000;
  let found = await client.getQueueRuntimeProperties(place.administered);
  while (found.activeMessageCount !== 3) {
    assert.ok(Date.now() < deadline, `${found.activeMessageCount} messages`);
    await sleep(300);
    found = await client.getQueueRuntimeProperties(place.administered);
  }
  assert.equal(found.totalMessageCount, 3);
  assert.ok(found.sizeInBytes > 0);
  assert.equal(found.deadLetterMessageCount, 0);
  assert.equal(found.scheduledMessageCount, 0);
  assert.ok(found.createdAt instanceof Date && found.modifiedAt instanceof Date && found.accessedAt instanceof Date);
};
