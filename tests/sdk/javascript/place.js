// Where an operation happens: what the one who runs it has told, and what several operations do alike.
"use strict";

const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const { ServiceBusAdministrationClient, ServiceBusClient } = require("@azure/service-bus");
const Long = require("long");

// This SDK has no such operation; the words say what it lacks.
class AbsentFromSdk extends Error {}

class Place {
  constructor(told) {
    Object.assign(this, told);
    this.clients = [];
  }

  client({ connection = this.connection, retryOptions } = {}) {
    const client = new ServiceBusClient(connection, { retryOptions: { timeoutInMs: 20_000, ...retryOptions } });
    this.clients.push(client);
    return client;
  }

  administrationClient() {
    return new ServiceBusAdministrationClient(this.administration);
  }

  // With an operation everything ends that it has opened.
  async close() {
    await Promise.all(this.clients.map((client) => client.close()));
  }
}

// A name that nobody else uses.
const own = (word) => `${word}-${randomUUID().slice(0, 13)}`;

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// Exactly so many; a call of the SDK may give fewer.
async function receive(receiver, count, withinMs = 20_000) {
  const deadline = Date.now() + withinMs;
  const found = [];
  while (found.length < count && Date.now() < deadline) {
    const left = Math.max(1000, Math.min(deadline - Date.now(), 5000));
    found.push(...(await receiver.receiveMessages(count - found.length, { maxWaitTimeInMs: left })));
  }
  assert.equal(found.length, count, `${found.length} messages came instead of ${count}`);
  return found;
}

async function receiveOne(receiver, withinMs) {
  return (await receive(receiver, 1, withinMs))[0];
}

async function completeAll(receiver, messages) {
  for (const message of messages) await receiver.completeMessage(message);
}

async function nothingComes(receiver, withinMs = 1000) {
  const found = await receiver.receiveMessages(1, { maxWaitTimeInMs: withinMs });
  assert.equal(found.length, 0, `a message came that should not be there: ${found[0]?.body}`);
}

// In a partition whose numbers this SDK knows to the last bit, where something is asked for by its number: rhea rounds
// those of partition 32 (docs/using/azure-sdks.md). This key's is another one, of 16 and of 80.
const EXACT = { partitionKey: "whole" };

const START = { fromSequenceNumber: Long.ONE };

async function isEmpty(receiver) {
  assert.deepEqual(await receiver.peekMessages(1, START), []);
}

// What is awaited must fail, with one of these codes where any are given.
async function refused(attempt, ...codes) {
  try {
    await attempt;
  } catch (error) {
    if (codes.length > 0) assert.ok(codes.includes(error.code), `${error.code}, not ${codes}: ${error.message}`);
    return error;
  }
  throw new Error(`it was not refused with ${codes.join(" or ") || "anything"}`);
}

const range = (count) => Array.from({ length: count }, (_, number) => number);
const sorted = (numbers) => [...numbers].sort((a, b) => a - b);

module.exports = {
  AbsentFromSdk, EXACT, Place, START, completeAll, isEmpty, nothingComes, own, range, receive, receiveOne, refused, sleep, sorted,
};
