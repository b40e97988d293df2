"""Programs of Kafka's own that users run: Kafka Streams and MirrorMaker 2."""

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Position

from tests.harness import processes
from tests.harness.checker import check_produced
from tests.harness.clients import ProducerRun, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.java import compile_java
from tests.harness.maven import Library
from tests.harness.stored import read_partition
from tests.harness.waiting import until
from tests.runs.place import PARTITIONS, Figures, Place, hints, move_under_load

_VERSION = "3.9.1"
_STREAMS_SOURCES = Path(__file__).parent / "streams"
#: As WindowCounts.java has them.
_KEYS = 7
_WINDOW_MS = 1_000
#: Of every cluster: coordinators move as well.
_INTERNAL = ("__consumer_offsets", "__transaction_state")
_JVM = (
    "java",
    "-Xmx512m",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
_READ = 1_000
_STARTS_S = 120.0
_ENDS_S = 30.0
#: What comes of the source's topics in the target (DefaultReplicationPolicy).
_SOURCE, _TARGET = "source", "target"


def streams(place: Place) -> Figures:
    """Kafka Streams, ``exactly_once_v2``: a windowed count of what an idempotent producer wrote.

    All leaders move: of input, output, repartition topic and changelog, and the coordinators'.
    Each record must have made one record of the output, the next count of its key and window.
    """
    read, written = place.make_topic("input"), place.make_topic("output")
    application = f"counts-{read}"
    inner = (f"{application}-by-number-repartition", f"{application}-counts-changelog")
    with place.proxies() as fleet:
        producer = _produce(place, read)
        with _streams(place, read, written, application) as log:
            until(lambda: "RUNNING" in log.read_text().splitlines(), "Streams runs", _STARTS_S)
            producer.wait_acked(1)
            move_under_load(place, producer, [read, written, *inner, *_INTERNAL])
            check_produced(place.admin, producer.stop())
            wanted = _wanted(place.cluster, read)
            until(
                lambda: (
                    sum(map(len, _committed(place.cluster, written).values())) >= wanted.total()
                ),
                "all counts are committed",
            )
        found = _committed(place.cluster, written)
        right = {window: [*range(1, count + 1)] for window, count in wanted.items()}
        wrong = {window for window in right.keys() | found if right.get(window) != found[window]}
        assert not wrong, f"wrong counts: {[(at, found[at], right.get(at)) for at in wrong][:3]}"
        return {"records": wanted.total(), "windows": len(wanted), **hints(fleet)}


def _produce(place: Place, topic: str) -> ProducerRun:
    writes = ProducerSpec(place.bootstrap, topic, range(PARTITIONS), idempotent=True)
    return place.java().produce(writes)


@contextlib.contextmanager
def _streams(place: Place, read: str, written: str, application: str) -> Iterator[Path]:
    """Run the application meanwhile; its log has a line for each state."""
    library = Library("kafka-streams", _VERSION).fetch()
    classes = compile_java(_STREAMS_SOURCES, library)
    state = place.folder / "state"
    arguments = [place.bootstrap, read, written, application, str(state)]
    argv = [*_JVM, "-cp", f"{classes}:{library.classpath}", "WindowCounts", *arguments]
    with _running(argv, place.folder / "streams.log") as log:
        yield log


@contextlib.contextmanager
def _running(argv: list[str], log: Path) -> Iterator[Path]:
    """Run a program meanwhile, and have it end as an operator does."""
    log.parent.mkdir(parents=True, exist_ok=True)
    process = processes.start(argv, output=log)
    try:
        yield log
        assert process.poll() is None, f"it ended by itself: {log.read_text()[-2000:]}"
    finally:
        processes.end(process, _ENDS_S)


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


def mirror(place: Place, target: Place) -> Figures:
    """MirrorMaker 2 from one cluster to another, through the proxies of both: counts compared."""
    topic = place.make_topic("mirrored")
    copy = f"{_SOURCE}.{topic}"
    with place.proxies() as fleet, contextlib.ExitStack() as stack:
        others = fleet if target is place else stack.enter_context(target.proxies())
        producer = _produce(place, topic)
        with _mirror_maker(place, target, topic):
            until(lambda: _copied(target, copy), "the first records are copied", _STARTS_S)
            for _ in range(place.moves):
                move_under_load(place, producer, [topic])
                target.move(copy)
            check_produced(place.admin, producer.stop())
            sent = {(one.partition, one.seq) for one in producer.acked}
            until(lambda: _copied(target, copy).keys() >= sent, f"all {len(sent)} are copied")
        copied = _copied(target, copy)
        assert copied.keys() == sent, f"never sent: {copied.keys() - sent}"
        again = copied.total() - len(copied)
        figures = {"records": len(sent), "copied twice": again, **hints(fleet)}
        if others is not fleet:
            figures |= {f"{name} at the target": count for name, count in hints(others).items()}
        return figures


@contextlib.contextmanager
def _mirror_maker(place: Place, target: Place, topic: str) -> Iterator[None]:
    library = Library("connect-mirror", _VERSION).fetch()
    way = f"{_SOURCE}->{_TARGET}"
    factors = (
        "",
        *("checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic."),
        *("offset.storage.", "status.storage.", "config.storage."),
    )
    settings = {
        "clusters": f"{_SOURCE}, {_TARGET}",
        f"{_SOURCE}.bootstrap.servers": place.bootstrap,
        f"{_TARGET}.bootstrap.servers": target.bootstrap,
        # Else a record may be copied twice when a leader moves.
        f"{_TARGET}.producer.enable.idempotence": "true",
        f"{way}.enabled": "true",
        f"{_TARGET}->{_SOURCE}.enabled": "false",
        f"{way}.topics": topic,
        "sync.topic.acls.enabled": "false",
        "refresh.topics.interval.seconds": "5",
        "offset.flush.interval.ms": "1000",
        **{f"{name}replication.factor": "3" for name in factors},
    }
    file = place.folder / "mirror-maker.properties"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{name} = {value}\n" for name, value in settings.items()))
    main = "org.apache.kafka.connect.mirror.MirrorMaker"
    argv = [*_JVM, "-cp", library.classpath, main, str(file)]
    with _running(argv, place.folder / "mirror-maker.log"):
        yield


def _copied(target: Place, topic: str) -> Counter[tuple[int, int]]:
    """Partitions and numbers of the records that the target has."""
    return Counter(
        (partition, record.seq)
        for partition in target.admin.partitions(topic)
        for record in read_partition(target.admin, topic, partition)
    )
