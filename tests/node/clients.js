// Consumers of @platformatic/kafka, as tests/harness/clients.py drives them: members of a group
// that read a topic from its start. It says nothing of other commands than consume and stop.

import { createInterface } from "node:readline";
import { Consumer, MessagesStreamModes, stringDeserializers } from "@platformatic/kafka";

const running = new Map();

function report(id, event, fields = {}) {
  process.stdout.write(JSON.stringify({ id, event, ...fields }) + "\n");
}

function crash(id, error) {
  console.error(error);
  report(id, "crashed", { error: String(error) });
}

// A record's value: its producer, partition, number, when it was sent in seconds since 1970, rest.
function consumed(id, message) {
  const [producer, , seq, sentAt] = message.value.split("|");
  const at = Date.now() / 1000;
  report(id, "consumed", {
    partition: message.partition,
    offset: Number(message.offset),
    producer,
    seq: Number(seq),
    at,
    latency_ms: (at - Number(sentAt)) * 1000,
  });
}

async function consume(id, options) {
  const consumer = new Consumer({
    clientId: id,
    groupId: options["prop.group.id"],
    bootstrapBrokers: options["prop.bootstrap.servers"].split(","),
    deserializers: stringDeserializers,
  });
  const stream = await consumer.consume({
    topics: [options.topic],
    mode: MessagesStreamModes.EARLIEST,
    maxWaitTime: 500,
  });
  running.set(id, async () => {
    await stream.close();
    await consumer.close();
  });
  stream.on("error", (error) => crash(id, error));
  stream.on("data", (message) => consumed(id, message));
  report(id, "started");
}

async function stop(id) {
  await running.get(id)();
  report(id, "done");
}

const commands = { consume, stop };
process.on("uncaughtException", (error) => {
  console.error(error);
  for (const id of running.keys()) crash(id, error);
});
for await (const line of createInterface({ input: process.stdin })) {
  const [command, id, ...fields] = line.split("\t");
  const options = Object.fromEntries(fields.map((field) => field.split(/=(.*)/s)));
  commands[command](id, options).catch((error) => crash(id, error));
}
process.exit();
