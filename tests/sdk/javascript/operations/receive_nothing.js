// A receive from an empty queue ends with nothing when its time is over, not before and not much later.
"use strict";
const assert = require("node:assert/strict");

module.exports = async function receiveNothing(place) {
  const receiver = place.client().createReceiver(place.queue);
  const began = performance.now();
  assert.deepEqual(await receiver.receiveMessages(5, { maxWaitTimeInMs: 2000 }), []);
  const took = performance.now() - began;
  assert.ok(took > 1500 && took < 6000, `it took ${took} ms`);
};
