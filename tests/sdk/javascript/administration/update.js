// What may change of a queue changes; what may not is refused, and nothing changes.
"use strict";
const assert = require("node:assert/strict");
const { refused } = require("../place");

module.exports = async function update(place) {
  const client = place.administrationClient();
  const queue = await client.getQueue(place.administered);
  const wanted = { ...queue, lockDuration: "PT45S", deadLetteringOnMessageExpiration: true, userMetadata: undefined };
  await client.updateQueue(wanted);
  const found = await client.getQueue(place.administered);
  assert.equal(found.lockDuration, "PT45S");
  assert.equal(found.deadLetteringOnMessageExpiration, true);
  assert.equal(found.userMetadata, undefined);
  assert.equal(found.maxDeliveryCount, 7);
  await refused(client.updateQueue({ ...found, requiresSession: true, maxDeliveryCount: 8 }), "ServiceError");
  assert.equal((await client.getQueue(place.administered)).maxDeliveryCount, 7);
};
