"""kafka-python."""

import os
import time

from kafka import KafkaConsumer, KafkaProducer, TopicPartition


def main() -> None:
    """Produce ten records a second, and consume them."""
    bootstrap, topic = os.environ["KAFKA_BOOTSTRAP"], os.environ["KAFKA_TOPIC"]
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=0)
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", fetch_max_wait_ms=100
    )
    consumer.assign([TopicPartition(topic, 0)])
    while True:
        producer.send(topic, b"x", partition=0)
        consumer.poll(timeout_ms=100)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
