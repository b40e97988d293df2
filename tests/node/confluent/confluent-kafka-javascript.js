// Producers and consumers of @confluentinc/kafka-javascript, with the settings that it has by itself.

import { setTimeout as sleep } from "node:timers/promises";
import confluent from "@confluentinc/kafka-javascript";

const ASSIGNED_MS = 50;

const client = (id, options) =>
  new confluent.KafkaJS.Kafka({
    kafkaJS: { clientId: id, brokers: options["prop.bootstrap.servers"].split(",") },
  });

export async function consume(id, options, read) {
  const kafkaJS = { groupId: options["prop.group.id"], fromBeginning: true };
  const consumer = client(id, options).consumer({ kafkaJS });
  await consumer.connect();
  await consumer.subscribe({ topic: options.topic });
  await consumer.run({
    eachMessage: async ({ partition, message }) => read(partition, message.offset, String(message.value)),
  });
  // It has no event for this.
  while (consumer.assignment().length === 0) await sleep(ASSIGNED_MS);
  return () => consumer.disconnect();
}

export async function producer(id, options) {
  const acks = options["prop.acks"] === "1" ? 1 : -1;
  const idempotent = options["prop.enable.idempotence"] === "true";
  const sender = client(id, options).producer({ kafkaJS: { acks, idempotent } });
  await sender.connect();
  return {
    async send(partition, value) {
      const messages = [{ partition, key: String(partition), value }];
      const [written] = await sender.send({ topic: options.topic, messages });
      return Number(written.baseOffset);
    },
    close: () => sender.disconnect(),
  };
}
