// @platformatic/kafka's producers and consumers, with the settings that it has by itself.

import {
  Consumer,
  MessagesStreamModes,
  Producer,
  stringDeserializers,
  stringSerializers,
} from "@platformatic/kafka";

const brokers = (options) => options["prop.bootstrap.servers"].split(",");

export async function consume(id, options, read, failed) {
  const consumer = new Consumer({
    clientId: id,
    groupId: options["prop.group.id"],
    bootstrapBrokers: brokers(options),
    deserializers: stringDeserializers,
  });
  const stream = await consumer.consume({
    topics: [options.topic],
    mode: MessagesStreamModes.EARLIEST,
    maxWaitTime: 500,
  });
  stream.on("error", failed);
  stream.on("data", (message) => read(message.partition, message.offset, message.value));
  return async () => {
    await stream.close();
    await consumer.close();
  };
}

export async function producer(id, options) {
  // A call that does not say it has 1, whatever the producer was made with; only idempotent ones have all.
  const acks = options["prop.acks"] === "1" ? 1 : -1;
  const client = new Producer({
    clientId: id,
    bootstrapBrokers: brokers(options),
    serializers: stringSerializers,
    idempotent: options["prop.enable.idempotence"] === "true",
  });
  return {
    async send(partition, value) {
      const { offsets } = await client.send({
        acks,
        messages: [{ topic: options.topic, partition, key: String(partition), value }],
      });
      return Number(offsets[0].offset);
    },
    close: () => client.close(),
  };
}
