"""confluent-kafka."""

import os
import time

from confluent_kafka import Consumer, Producer, TopicPartition


def main() -> None:
    """Produce ten records a second, and consume them."""
    bootstrap, topic = os.environ["KAFKA_BOOTSTRAP"], os.environ["KAFKA_TOPIC"]
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "fetch.wait.max.ms": 100})
    consumer.assign([TopicPartition(topic, 0, 0)])
    while True:
        producer.produce(topic, b"x", partition=0)
        producer.poll(0)
        consumer.poll(0.1)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
