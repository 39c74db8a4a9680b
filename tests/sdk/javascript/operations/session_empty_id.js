// The empty text is a session's id like any other.
"use strict";
const { AbsentFromSdk } = require("../place");

module.exports = async function sessionEmptyId() {
  throw new AbsentFromSdk("it takes an empty session id for none");
};
