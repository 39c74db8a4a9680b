// Where no session has messages, asking for the next one times out.
"use strict";
const assert = require("node:assert/strict");
const { refused } = require("../place");

module.exports = async function sessionNoneAvailable(place) {
  const client = place.client({ retryOptions: { timeoutInMs: 2000, maxRetries: 0 } });
  const began = performance.now();
  await refused(client.acceptNextSession(place.sessions), "ServiceTimeout");
  const took = performance.now() - began;
  assert.ok(took > 1000 && took < 15_000, `it took ${took} ms`);
};
