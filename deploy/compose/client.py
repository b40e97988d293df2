"""Writes some records a second to the topic `hints`, and says which of them took long to arrive."""

import os
import sys
import time

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

TOPIC = "hints"
SLOW_MS = 200.0

bootstrap = {"bootstrap.servers": os.environ["BOOTSTRAP"]}


def delivered(error: KafkaError | None, message: Message) -> None:
    """Say what became of a record where that is worth a line."""
    latency_ms = (message.latency() or 0.0) * 1000
    if error is not None:
        sys.exit(f"a record was not taken: {error}")
    if latency_ms > SLOW_MS:
        print(f"{time.strftime('%H:%M:%S')} offset {message.offset()} took {latency_ms:.0f} ms")


AdminClient(bootstrap).create_topics([NewTopic(TOPIC, 1, 3)])
producer = Producer({**bootstrap, "enable.idempotence": True})
print(f"writing to {TOPIC}")
while True:
    producer.produce(TOPIC, time.strftime("%H:%M:%S"), on_delivery=delivered)
    producer.poll(0.1)
