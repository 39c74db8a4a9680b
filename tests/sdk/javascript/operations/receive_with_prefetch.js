// A receiver that fetches ahead gives each message once.
"use strict";
const { AbsentFromSdk } = require("../place");

module.exports = async function receiveWithPrefetch() {
  throw new AbsentFromSdk("it does not fetch ahead");
};
