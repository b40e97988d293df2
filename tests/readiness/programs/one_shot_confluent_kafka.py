"""Writes three records and reads them in a group, with any release of confluent-kafka."""

import sys

from confluent_kafka import Consumer, Producer

_RECORDS = 3


def main(bootstrap: str, topic: str, name: str) -> None:
    """Do it once."""
    shared = {"bootstrap.servers": bootstrap, "client.id": name}
    producer = Producer(shared)
    for number in range(_RECORDS):
        producer.produce(topic, str(number).encode())
    assert producer.flush(30) == 0, "not all were acknowledged"
    consumer = Consumer({**shared, "group.id": name, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    read = 0
    while read < _RECORDS:
        message = consumer.poll(1)
        read += message is not None and message.error() is None
    consumer.commit(asynchronous=False)
    consumer.close()


main(*sys.argv[1:])
