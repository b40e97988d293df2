"""Writes three records and reads them in a group, with any release of aiokafka."""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

_RECORDS = 3


async def main(bootstrap: str, topic: str, name: str) -> None:
    """Do it once."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, client_id=name)
    await producer.start()
    for number in range(_RECORDS):
        await producer.send_and_wait(topic, str(number).encode())
    await producer.stop()
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        client_id=name,
        group_id=name,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    for _ in range(_RECORDS):
        await consumer.getone()
    await consumer.commit()
    await consumer.stop()


asyncio.run(main(*sys.argv[1:]))
