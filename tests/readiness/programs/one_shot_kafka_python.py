"""Writes three records and reads them in a group, with any release of kafka-python."""

import sys

from kafka import KafkaConsumer, KafkaProducer

_RECORDS = 3


def main(bootstrap: str, topic: str, name: str) -> None:
    """Do it once."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, client_id=name)
    for number in range(_RECORDS):
        producer.send(topic, str(number).encode()).get(30)
    producer.close()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        client_id=name,
        group_id=name,
        auto_offset_reset="earliest",
    )
    for _ in range(_RECORDS):
        next(consumer)
    consumer.commit()
    consumer.close()


main(*sys.argv[1:])
