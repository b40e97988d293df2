"""The group protocols of Kafka 4: consumers that the broker assigns (KIP-848), and share groups."""

import contextlib
from itertools import chain
from pathlib import Path

from tests.harness.checker import check_produced
from tests.harness.clients import ClientProcess, ConsumerRun, ConsumerSpec, ProducerSpec
from tests.harness.java import compile_java
from tests.harness.maven import client_library
from tests.real.sandwich import Sandwich, of_client
from tests.runs.place import (
    PARTITIONS,
    RATE,
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
#: How a line of ShareClients.java begins, one for each record.
_REFUSED = "refused "


def consumer_protocol(place: Place) -> Figures:
    """Two members with ``group.protocol=consumer``, one of which leaves."""
    return _read_by(place, place.java(), "consumer", {"group.protocol": "consumer"})


def share_group(place: Place) -> Figures:
    """Two members of a share group, which acknowledge each record; one of them leaves.

    A broker that leads no longer refuses acknowledgements, and the next leader gives these records
    again. That is counted.
    """
    log = place.folder / "share.log"
    with _share_clients(log) as process:
        figures = _read_by(place, process, "share", {})
    lines = log.read_text(errors="replace").splitlines()
    refused = sum(line.startswith(_REFUSED) for line in lines)
    return {**figures, "acknowledgements refused": refused}


def _share_clients(log: Path) -> ClientProcess:
    library = client_library(_VERSION)
    classes = compile_java(_SOURCES, library)
    argv = ["java", "-Xmx256m", "-cp", f"{classes}:{library.classpath}", "ShareClients"]
    return ClientProcess(argv, log)


def _read_by(place: Place, process: ClientProcess, label: str, settings: dict[str, str]) -> Figures:
    """Have members of a group read what is written: each record at least once.

    Brokers that know these groups give hints themselves, so all must pass byte for byte.
    """
    with contextlib.ExitStack() as stack:
        sandwich = None
        if not place.direct:
            proxies = Sandwich(place.cluster, place.folder / "proxies", sidecars=True)
            sandwich = stack.enter_context(proxies)
        topic = place.make_topic(label)
        partitions = range(PARTITIONS)
        group = f"group-{topic}"
        spec = ConsumerSpec(place.bootstrap, topic, partitions, group=group, settings=settings)
        members = [process.consume(spec) for _ in range(_MEMBERS)]
        writes = ProducerSpec(place.bootstrap, topic, partitions, rate=RATE, idempotent=True)
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
        if sandwich is None:
            return figures
        unchanged = sum(sandwich.wait_unchanged(of_client(member.name)) for member in members)
        return {**figures, **hints(sandwich.fleet), "connections unchanged": unchanged}


def _read(members: list[ConsumerRun]) -> Numbers:
    # Copies: more may come meanwhile.
    return numbers(chain.from_iterable([*member.consumed] for member in members))
