// A session's state is set, read, kept after its messages, and cleared.
"use strict";
const assert = require("node:assert/strict");
const { own } = require("../place");

module.exports = async function sessionState(place) {
  const client = place.client();
  const sessionId = own("session");
  const first = await client.acceptSession(place.sessions, sessionId);
  assert.equal(await first.getSessionState(), null);
  await first.setSessionState({ step: 1, text: "größer" });
  assert.deepEqual(await first.getSessionState(), { step: 1, text: "größer" });
  await first.close();
  const second = await client.acceptSession(place.sessions, sessionId);
  assert.deepEqual(await second.getSessionState(), { step: 1, text: "größer" });
  await second.setSessionState(null);
  assert.equal(await second.getSessionState(), null);
};
