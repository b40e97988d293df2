// Producers and consumers of a library for Node, as tests/harness/clients.py drives them. The
// program's argument is the library, by its file beside this one. Consumers are members of a group that
// read a topic from its start. There are no other commands than produce, consume and stop.

import { Console } from "node:console";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

// Standard output is for reports alone, and libraries log to it.
globalThis.console = new Console(process.stderr);
const library = await import(`./${process.argv[2]}.js`);
const running = new Map();

function report(id, event, fields = {}) {
  process.stdout.write(JSON.stringify({ id, event, ...fields }) + "\n");
}

function crash(id, error) {
  console.error(error);
  report(id, "crashed", { error: String(error) });
}

const now = () => Date.now() / 1000;

// A record's value: its producer, partition, number, when it was sent in seconds since 1970, rest.
function consumed(id, partition, offset, value) {
  const [producer, , seq, sentAt] = value.split("|");
  const at = now();
  const latency_ms = (at - Number(sentAt)) * 1000;
  report(id, "consumed", { partition, offset: Number(offset), producer, seq: Number(seq), at, latency_ms });
}

async function consume(id, options) {
  const read = (partition, offset, value) => consumed(id, partition, offset, value);
  const end = await library.consume(id, options, read, (error) => crash(id, error));
  running.set(id, end);
  report(id, "started");
}

// Records go to partitions in turn at a steady rate, each in a call of its own.
async function produce(id, options) {
  const partitions = options.partitions.split(",").map(Number);
  const [rate, count, size] = [options.rate, options.count, options.size].map(Number);
  const producer = await library.producer(id, options);
  const pending = new Set();
  let stopping = false;
  const work = async () => {
    const began = now();
    for (let number = 0; !stopping && (count === 0 || number < count); number++) {
      const wait = rate > 0 ? (began + number / rate - now()) * 1000 : 0;
      if (wait > 0) await sleep(wait);
      const partition = partitions[number % partitions.length];
      const seq = Math.floor(number / partitions.length);
      const at = now();
      const value = `${id}|${partition}|${seq}|${at.toFixed(6)}|`.padEnd(size, "x");
      const sent = producer.send(partition, value).then(
        (offset) => report(id, "acked", { partition, seq, offset, at: now(), latency_ms: (now() - at) * 1000 }),
        (error) => report(id, "failed", { partition, seq, error: String(error) }),
      );
      const settled = sent.finally(() => pending.delete(settled));
      pending.add(settled);
    }
    await Promise.all(pending);
    await producer.close();
  };
  report(id, "started");
  const worked = work();
  if (count > 0) {
    await worked;
    report(id, "done");
    return;
  }
  worked.catch((error) => crash(id, error));
  running.set(id, async () => {
    stopping = true;
    await worked;
  });
}

async function stop(id) {
  await running.get(id)();
  report(id, "done");
}

const commands = { produce, consume, stop };
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
