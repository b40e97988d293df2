// kafkajs's producers and consumers, with the settings that it has by itself.

import kafkajs from "kafkajs";

const client = (id, options) =>
  new kafkajs.Kafka({
    clientId: id,
    brokers: options["prop.bootstrap.servers"].split(","),
    logLevel: kafkajs.logLevel.WARN,
  });

export async function consume(id, options, read, failed) {
  const consumer = client(id, options).consumer({ groupId: options["prop.group.id"], maxWaitTimeInMs: 500 });
  await consumer.connect();
  await consumer.subscribe({ topic: options.topic, fromBeginning: true });
  const joined = new Promise((resolve) => consumer.on(consumer.events.GROUP_JOIN, resolve));
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    if (!payload.restart) failed(payload.error);
  });
  await consumer.run({
    eachMessage: async ({ partition, message }) => read(partition, message.offset, String(message.value)),
  });
  await joined;
  return () => consumer.disconnect();
}

export async function producer(id, options) {
  const idempotent = options["prop.enable.idempotence"] === "true";
  // It asks for this where each record is to be written once.
  const more = idempotent ? { idempotent, maxInFlightRequests: 1 } : {};
  const sender = client(id, options).producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner, ...more });
  await sender.connect();
  return {
    async send(partition, value) {
      const [written] = await sender.send({
        topic: options.topic,
        acks: options["prop.acks"] === "1" ? 1 : -1,
        messages: [{ partition, key: String(partition), value }],
      });
      return Number(written.baseOffset);
    },
    close: () => sender.disconnect(),
  };
}
