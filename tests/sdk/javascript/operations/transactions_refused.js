// Transactions come later; until then they are refused in a way that harms nobody else.
"use strict";
const { AbsentFromSdk } = require("../place");

module.exports = async function transactionsRefused() {
  throw new AbsentFromSdk("it has no transactions");
};
