// Runs operations on @azure/service-bus: each line of standard input asks for one, each line of output tells how it went.
"use strict";

const path = require("node:path");
const readline = require("node:readline");
const { AbsentFromSdk, Place } = require("./place");

async function done({ operation, place: told }) {
  const began = performance.now();
  const place = new Place(told);
  let [outcome, said] = ["passed", ""];
  try {
    const [name, folder = "operations"] = operation.split(".").reverse();
    await require(path.join(__dirname, folder, `${name}.js`))(place);
  } catch (error) {
    [outcome, said] = error instanceof AbsentFromSdk ? ["absent", error.message] : ["failed", error.stack ?? `${error}`];
  }
  try {
    await place.close();
  } catch (error) {
    if (outcome === "passed") [outcome, said] = ["failed", `closing: ${error.stack}`];
  }
  return { outcome, said, seconds: Math.round(performance.now() - began) / 1000 };
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(`${JSON.stringify(await done(JSON.parse(line)))}\n`);
  }
  process.exit(0); // whatever an SDK still waits for
}

main();
