// A sequence number that is no deferred message's is told so.
"use strict";
const Long = require("long");
const { refused } = require("../place");

module.exports = async function deferredUnknown(place) {
  const receiver = place.client({ retryOptions: { maxRetries: 0 } }).createReceiver(place.queue);
  await refused(receiver.receiveDeferredMessages(Long.fromNumber(1_000_000)), "MessageNotFound");
};
