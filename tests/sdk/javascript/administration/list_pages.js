// Queues are listed page by page, each of them once; there are no topics.
"use strict";
const assert = require("node:assert/strict");

module.exports = async function listPages(place) {
  const client = place.administrationClient();
  const names = [];
  for await (const queue of client.listQueues()) names.push(queue.name);
  assert.ok(names.includes(place.administered) && !names.includes(place.missing));
  const paged = [];
  let longest = 0;
  for await (const page of client.listQueues().byPage({ maxPageSize: 2 })) {
    longest = Math.max(longest, page.length);
    paged.push(...page.map((queue) => queue.name));
  }
  assert.equal(longest, 2);
  assert.equal(new Set(paged).size, paged.length);
  const counted = [];
  for await (const queue of client.listQueuesRuntimeProperties()) counted.push(queue.name);
  for (const name of ["list-a", "list-b", "list-c"]) {
    assert.ok(paged.includes(name) && counted.includes(name), `${name} is in no page`); // others may come and go meanwhile
  }
  for await (const topic of client.listTopics()) assert.fail(`there is a topic ${topic.name}`);
  assert.ok((await client.getNamespaceProperties()).name);
};
