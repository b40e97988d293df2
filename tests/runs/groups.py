"""The group protocols of Kafka 4: consumers that the broker assigns (KIP-848), and share groups."""

from itertools import chain
from pathlib import Path

from tests.harness.checker import check_produced
from tests.harness.clients import ClientProcess, ConsumerRun, ConsumerSpec, ProducerSpec
from tests.harness.java import compile_java
from tests.harness.maven import client_library
from tests.runs.place import (
    PARTITIONS,
    Figures,
    Numbers,
    Place,
    hints,
    move_under_load,
    numbers,
)

_SOURCES = Path(__file__).parent / "share"
_VERSION = "4.1.1"
_MEMBERS = 2


def consumer_protocol(place: Place) -> Figures:
    """Two members with ``group.protocol=consumer``, one of which leaves."""
    return _read_by(place, place.java(), "consumer", {"group.protocol": "consumer"})


def share_group(place: Place) -> Figures:
    """Two members of a share group, which acknowledge each record; one of them leaves."""
    with _share_clients(place.folder) as process:
        return _read_by(place, process, "share", {})


def _share_clients(folder: Path) -> ClientProcess:
    library = client_library(_VERSION)
    classes = compile_java(_SOURCES, library)
    argv = ["java", "-Xmx256m", "-cp", f"{classes}:{library.classpath}", "ShareClients"]
    return ClientProcess(argv, folder / "share.log")


def _read_by(place: Place, process: ClientProcess, label: str, settings: dict[str, str]) -> Figures:
    """Have members of a group read what is written: each record at least once."""
    with place.proxies() as fleet:
        topic = place.make_topic(label)
        partitions = range(PARTITIONS)
        group = f"group-{topic}"
        spec = ConsumerSpec(place.bootstrap, topic, partitions, group=group, settings=settings)
        members = [process.consume(spec) for _ in range(_MEMBERS)]
        writes = ProducerSpec(place.bootstrap, topic, partitions, idempotent=True)
        producer = place.java().produce(writes)
        move_under_load(place, producer, [topic])
        members[0].stop()
        move_under_load(place, producer, [topic])
        check_produced(place.admin, producer.stop())
        sent = numbers(producer.acked).keys()
        members[-1].wait_consumed(
            lambda _: sent <= _read(members).keys(), f"all {len(sent)} records"
        )
        members[-1].stop()
        read = _read(members)
        assert read.keys() == sent, f"never sent: {read.keys() - sent}"
        again = read.total() - len(read)
        members_read = sum(1 for member in members if member.consumed)
        figures = {"records": len(sent), "members that read": members_read, "read again": again}
        return {**figures, **hints(fleet)}


def _read(members: list[ConsumerRun]) -> Numbers:
    # Copies: more may come meanwhile.
    return numbers(chain.from_iterable([*member.consumed] for member in members))
