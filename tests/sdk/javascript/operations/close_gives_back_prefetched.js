// Messages that a receiver fetched ahead and did not look at come back when it closes, as if never delivered.
"use strict";
const { AbsentFromSdk } = require("../place");

module.exports = async function closeGivesBackPrefetched() {
  throw new AbsentFromSdk("it does not fetch ahead");
};
