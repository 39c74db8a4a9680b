// The sessions that have messages or state are listed.
"use strict";
const { AbsentFromSdk } = require("../place");

module.exports = async function sessionList() {
  throw new AbsentFromSdk("it does not list sessions");
};
