"""Kafka Streams: a count in windows, exactly once."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Position

from tests.harness.checker import check_produced
from tests.harness.cluster import RealCluster
from tests.harness.java import compile_java
from tests.harness.maven import Library
from tests.harness.waiting import until
from tests.runs.place import PARTITIONS, Figures, Place, hints, move_under_load
from tests.runs.program import STARTS_S, VERSION, running, write

_SOURCES = Path(__file__).parent / "streams"
#: As WindowCounts.java has them.
_KEYS = 7
_WINDOW_MS = 1_000
#: Of every cluster: coordinators move as well.
_INTERNAL = ("__consumer_offsets", "__transaction_state")
_READ = 1_000


def window_counts(place: Place) -> Figures:
    """Kafka Streams, ``exactly_once_v2``: a windowed count of what an idempotent producer wrote.

    All leaders move: of input, output, repartition topic and changelog, and the coordinators'.
    Each record must have made one record of the output, the next count of its key and window.
    """
    read, written = place.make_topic("input"), place.make_topic("output")
    application = f"counts-{read}"
    inner = (f"{application}-by-number-repartition", f"{application}-counts-changelog")
    library = Library("kafka-streams", VERSION).fetch()
    classpath = f"{compile_java(_SOURCES, library)}:{library.classpath}"
    arguments = [place.bootstrap, read, written, application, str(place.folder / "state")]
    log = place.folder / "streams.log"
    with place.proxies() as fleet:
        producer = write(place, read)
        with running(classpath, "WindowCounts", arguments, log):
            # It writes a line for each of its states.
            until(lambda: "RUNNING" in log.read_text().splitlines(), "Streams runs", STARTS_S)
            move_under_load(place, producer, [read, written, *inner, *_INTERNAL])
            check_produced(place.admin, producer.stop())
            wanted = _wanted(place.cluster, read)
            until(
                lambda: _count(_committed(place.cluster, written)) >= wanted.total(),
                "all counts are committed",
            )
        found = _committed(place.cluster, written)
        right = {window: [*range(1, count + 1)] for window, count in wanted.items()}
        wrong = {window for window in right.keys() | found if right.get(window) != found[window]}
        assert not wrong, f"wrong counts: {[(at, found[at], right.get(at)) for at in wrong][:3]}"
        return {"records": wanted.total(), "windows": len(wanted), **hints(fleet)}


def _count(committed: Mapping[str, list[int]]) -> int:
    return sum(map(len, committed.values()))


def _wanted(cluster: RealCluster, topic: str) -> Counter[str]:
    """How many records of a topic are in each window, by key and window."""
    return Counter(
        f"{int(value.split('|')[2]) % _KEYS}@{sent // _WINDOW_MS * _WINDOW_MS}"
        for _, value, sent in _all_of(cluster, topic)
    )


def _committed(cluster: RealCluster, topic: str) -> Mapping[str, list[int]]:
    """The counts that were written, by key and window, in their order."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for key, value, _ in _all_of(cluster, topic):
        found[key].append(int(value))
    return found


def _all_of(cluster: RealCluster, topic: str) -> list[tuple[str, str, int]]:
    """Keys, values and timestamps of all committed records, past all proxies."""
    reader = Consumer(
        {
            "bootstrap.servers": cluster.direct_bootstrap,
            "group.id": "unused",
            "enable.partition.eof": True,
        }
    )
    reader.assign([Position(topic, number, 0) for number in range(PARTITIONS)])
    found: list[tuple[str, str, int]] = []
    ended: set[int] = set()
    try:

        def read() -> bool:
            for message in reader.consume(_READ, 0.1):
                if message.error() is not None:
                    ended.add(message.partition() or 0)
                    continue
                ended.discard(message.partition() or 0)
                key, value = message.key() or b"", message.value() or b""
                found.append((key.decode(), value.decode(), message.timestamp()[1]))
            return len(ended) == PARTITIONS

        until(read, f"all of {topic}")
    finally:
        reader.close()
    return found
