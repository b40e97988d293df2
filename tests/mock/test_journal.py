"""Whole proxies that keep a journal, before the mock cluster: files, a topic, and troubles."""

import contextlib
import itertools
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from leader_hints.mock.cluster import BEFORE_HINTS, MockCluster
from leader_hints.observe.journal import CLIENT_ID_PREFIX
from tests.harness.ports import free_ports
from tests.harness.proxyproc import LogLine, ProxyError, ProxyProcess
from tests.harness.small_disk import mounted_small_disk
from tests.harness.waiting import never, until
from tests.mock.journals import TopicReader, file_lines
from tests.observe.journal_lines import Line, checked, in_order

_SECONDS = 60.0

#: With room for all that the buffer keeps and what stands in the file before, so that a gap can be
#: written behind it.
_TMPFS_BYTES = 262_144


class _Scene:
    """A mock cluster of three brokers behind a proxy that keeps a journal."""

    def __init__(self, folder: Path, journal: Mapping[str, Any]) -> None:
        self.folder = folder
        self._listens = [("127.0.0.1", port) for port in free_ports(3)]
        # How long its end takes is not what is tested.
        self.journal = {"sidecar": "car", "flush_ms": 30_000, **journal}
        self._proxies = 0

    @property
    def bootstrap(self) -> str:
        """The proxy's addresses."""
        return ",".join(f"{host}:{port}" for host, port in self._listens)

    @contextlib.contextmanager
    def cluster(self, *topics: str) -> Iterator[MockCluster]:
        """The cluster, which advertises the proxy."""
        advertise = dict(enumerate(self._listens, start=1))
        wanted = dict.fromkeys(("t", *topics), 1)
        with MockCluster(3, wanted, BEFORE_HINTS, advertise=advertise) as cluster:
            yield cluster

    def proxy(self, cluster: MockCluster) -> ProxyProcess:
        """A proxy process; one at a time."""
        self._proxies += 1
        config = self.folder / "proxy.yaml"
        settings = {"journal": self.journal, "subscription": {"poll_interval_ms": 100}}
        config.write_text(yaml.safe_dump(settings), encoding="utf-8")
        routes = list(zip(self._listens, cluster.brokers.values(), strict=True))
        log = self.folder / f"proxy-{self._proxies}.log"
        return ProxyProcess(routes, log, arguments=("--config", str(config)))


class _Traffic:
    """A producer and a consumer, each record of which arrives before the next one is sent."""

    def __init__(self, bootstrap: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "log_level": 0}
        self._producer = Producer({**settings, "client.id": "producer"})
        consumer = {"client.id": "consumer", "group.id": "g", "fetch.wait.max.ms": 10}
        self._consumer = Consumer({**settings, **consumer})
        self._consumer.assign([TopicPartition("t", 0, 0)])
        self._delivered: list[bytes | None] = []
        self._read: list[bytes | None] = []

    def __enter__(self) -> "_Traffic":
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.flush(_SECONDS)
        self._consumer.close()

    def exchange(self, value: bytes) -> None:
        """Have one record acknowledged and read."""
        self._producer.produce("t", value, partition=0, on_delivery=self._on_delivery)
        until(lambda: self._arrived(value), f"{value!r} arrives", _SECONDS)

    def _arrived(self, value: bytes) -> bool:
        self._producer.poll(0)
        message = self._consumer.poll(0)
        if message is not None and message.error() is None:
            self._read.append(message.value())
        return value in self._delivered and value in self._read

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        assert error is None
        self._delivered.append(message.value())


def _move_under_traffic(cluster: MockCluster, traffic: _Traffic) -> list[tuple[int, int]]:
    """Move the leader round under traffic; return nodes and epochs."""
    moves = []
    for number, node in enumerate((2, 3, 1, 2)):
        traffic.exchange(b"before %d" % number)
        moves.append(cluster.set_leader("t", 0, node))
        traffic.exchange(b"after %d" % number)
    return moves


def _check_moves(run: list[Line], moves: list[tuple[int, int]]) -> None:
    """All that is to be said of them is in the journal of one run, which is whole."""
    assert run[0]["event"] == "start"
    assert run[-1]["event"] == "stop"
    assert {line["sidecar"] for line in run} == {"car"}
    changes = [line for line in run if line["event"] == "leader_change" and line["topic"] == "t"]
    assert [(line["leader"], line["epoch"]) for line in changes] == moves
    before = [(1, 1), *moves[:-1]]
    assert [(line["leader_before"], line["epoch_before"]) for line in changes] == before
    errors = [line for line in run if line["event"] == "error"]
    assert {line["client_id"] for line in errors} == {"producer", "consumer"}
    assert {line["software"] for line in errors} <= {"confluent-kafka-python", "librdkafka"}
    seen = {line["client_id"] for line in run if line["event"] == "client"}
    assert seen >= {"producer", "consumer"}
    recovered = [line for line in run if line["event"] == "recovery"]
    assert {(line["client_id"], line["api"]) for line in recovered} == {
        ("producer", "Produce"),
        ("consumer", "Fetch"),
    }
    assert any(line["hinted"] and line["recovery_ms"] > 0 for line in recovered)
    hinted = [line for line in errors if line["hinted"]]
    assert {line["api"] for line in hinted} == {"Produce", "Fetch"}
    assert {(line["leader"], line["epoch"]) for line in hinted} <= {(1, 1), *moves}
    assert {line["cluster"] for line in changes + errors} == {errors[0]["cluster"]}


def test_files_report_every_move_error_and_hint(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    folder.mkdir()
    journal = {"kind": "files", "path": str(folder), "file_bytes": 1024, "sample_latencies": 2}
    scene = _Scene(tmp_path, journal)
    with scene.cluster() as cluster, scene.proxy(cluster) as proxy:
        with _Traffic(scene.bootstrap) as traffic:
            moves = _move_under_traffic(cluster, traffic)
        # Those that are closed already can be read while it goes on.
        assert until(lambda: file_lines(folder), "a file is finished", _SECONDS)
        written = proxy.metric("leader_hints_journal_written_total")
        assert written > 0
        assert proxy.metric("leader_hints_journal_dropped_total") == 0

    run = in_order(file_lines(folder))
    _check_moves(run, moves)
    assert len(run) >= written
    assert len(list(folder.iterdir())) == len(list(folder.glob("car_*.jsonl"))) > 1
    samples = [line for line in run if line["event"] == "latency"]
    assert {line["api"] for line in samples} == {"Produce", "Fetch"}
    assert all(0 < line["latency_ms"] < 60_000 for line in samples)


def test_a_killed_proxy_loses_no_line_and_the_next_begins_another_run(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    folder.mkdir()
    scene = _Scene(tmp_path, {"kind": "files", "path": str(folder)})
    with scene.cluster() as cluster:
        with pytest.raises(ProxyError, match="ended with -9"):
            _move_once_and_kill(scene, cluster)
        (left,) = folder.iterdir()
        assert left.name.endswith(".jsonl.open")
        torn = left.read_bytes()
        # What a kill in the middle of a write leaves.
        left.write_bytes(torn + b'{"version":1,"ev')
        with scene.proxy(cluster):
            pass

    older, newer = sorted(folder.iterdir())
    assert older.name == left.name.removesuffix(".open")
    assert older.read_bytes() == torn + b'{"version":1,"ev'
    older.write_bytes(torn)
    runs: dict[str, list[Line]] = {line["run"]: [] for line in file_lines(folder)}
    for line in file_lines(folder):
        runs[line["run"]].append(line)
    killed, stopped = (in_order(lines) for lines in runs.values())
    assert {"start", "leader_change", "error"} <= {line["event"] for line in killed}
    assert [line["event"] for line in stopped][-1] == "stop"
    assert newer.read_bytes().endswith(b"\n")


def _move_once_and_kill(scene: _Scene, cluster: MockCluster) -> None:
    """Raises ProxyError, since the proxy has not ended in order."""
    with scene.proxy(cluster) as proxy:
        with _Traffic(scene.bootstrap) as traffic:
            traffic.exchange(b"one")
            cluster.set_leader("t", 0, 2)
            traffic.exchange(b"two")
        until(lambda: {"leader_change", "error"} <= _kinds(scene.folder), "it is written", _SECONDS)
        os.kill(proxy.pid, signal.SIGKILL)
        until(lambda: _is_dead(proxy), "it is dead", _SECONDS)


def _kinds(folder: Path) -> set[str]:
    """The kinds of events in files that are not finished."""
    lines = [line for file in folder.glob("*/*.open") for line in file.read_bytes().split(b"\n")]
    return {checked(line)["event"] for line in lines[:-1]}


def _is_dead(proxy: ProxyProcess) -> bool:
    with contextlib.suppress(ProxyError):
        proxy.check()
        return False
    return True


def test_a_topic_of_another_cluster_tells_the_same(tmp_path: Path) -> None:
    with MockCluster(3, {"journal": 1}) as other:
        journal = {"kind": "topic", "bootstrap": other.bootstrap, "topic": "journal"}
        scene = _Scene(tmp_path, journal)
        with scene.cluster() as cluster, scene.proxy(cluster):
            with _Traffic(scene.bootstrap) as traffic:
                moves = _move_under_traffic(cluster, traffic)
            other.set_leader("journal", 0, 2)  # Its own moves lose and double nothing either.
        with TopicReader(other.bootstrap, "journal") as reader:
            until(lambda: reader.until(_is_stopped), "the journal's end", _SECONDS)
        assert reader.keys == {b"car"}
        _check_moves(in_order(reader.lines), moves)


def _is_stopped(lines: list[Line]) -> bool:
    return any(line["event"] == "stop" for line in lines)


def test_a_journal_through_the_proxy_itself_makes_no_loop(tmp_path: Path) -> None:
    """Every exchange is sampled, and the journal's own partition moves, with errors and hints."""
    scene = _Scene(tmp_path, {"kind": "topic", "topic": "journal", "sample_latencies": 1})
    scene.journal["bootstrap"] = scene.bootstrap
    with scene.cluster("journal") as cluster:
        with scene.proxy(cluster) as proxy:
            until(lambda: _written(proxy) > 0, "the journal has begun", _SECONDS)
            with _Traffic(scene.bootstrap) as traffic:
                moves = _move_under_traffic(cluster, traffic)
                for node in (2, 3):
                    _move_journal(cluster, proxy, traffic, node)
            assert any(line["event"] == "latency_sampled" for line in _own(proxy))
            count = _await_rest(proxy)
            never(lambda: _written(proxy) != count, "the journal writes of itself", 1.5)
        for node, address in cluster.brokers.items():
            cluster.set_advertised(node, *address)
        with TopicReader(cluster.bootstrap, "journal") as reader:
            until(lambda: reader.until(_is_stopped), "the journal's end", _SECONDS)

    run = in_order(reader.lines)
    _check_moves(run, moves)
    clients = {line["client_id"] for line in run if "client_id" in line}
    # A proxy that asks brokers at their advertised addresses is a client there, as any other is.
    assert clients - {"leader-hints"} == {"producer", "consumer"}
    moved = [line for line in run if line["event"] == "leader_change"]
    assert {line["topic"] for line in moved} == {"t", "journal"}


def _written(proxy: ProxyProcess) -> float:
    return proxy.metric("leader_hints_journal_written_total")


def _move_journal(cluster: MockCluster, proxy: ProxyProcess, traffic: _Traffic, node: int) -> None:
    """Move the journal's own partition, and give it events until its client meets the error."""
    before = len(_own_errors(proxy))
    cluster.set_leader("journal", 0, node)
    numbers = itertools.count()

    def met() -> bool:
        traffic.exchange(b"at %d: %d" % (node, next(numbers)))
        return len(_own_errors(proxy)) > before

    until(met, "the journal's client meets an error", _SECONDS)


def _own_errors(proxy: ProxyProcess) -> list[LogLine]:
    return [line for line in _own(proxy) if line["event"] in ("hint_given", "hint_missed")]


def _own(proxy: ProxyProcess) -> list[LogLine]:
    """What the proxy reported of the journal's own client."""
    return [
        line
        for line in proxy.lines()
        if str(line.get("client_id", "")).startswith(CLIENT_ID_PREFIX)
    ]


def _await_rest(proxy: ProxyProcess) -> float:
    """Wait until nothing is written for longer than events gather; return how much was."""
    counts: list[float] = []

    def rests() -> bool:
        counts.append(_written(proxy))
        return len(counts) > 50 and len(set(counts[-50:])) == 1

    until(rests, "the journal comes to rest", _SECONDS)
    return counts[-1]


def test_brokers_that_are_away_stop_neither_the_traffic_nor_the_end(tmp_path: Path) -> None:
    away = f"127.0.0.1:{free_ports(1)[0]}"
    journal = {"kind": "topic", "bootstrap": away, "buffer_bytes": 65536, "sample_latencies": 1}
    scene = _Scene(tmp_path, {**journal, "flush_ms": 2000})
    with scene.cluster() as cluster, scene.proxy(cluster) as proxy:
        with _Traffic(scene.bootstrap) as traffic:
            _exchange_until_dropped(proxy, traffic)
        assert len(proxy.events("journal_failing")) == 1
        assert _written(proxy) == 0
    # It has ended with 0, or leaving it would have raised.
    (abandoned,) = proxy.events("journal_abandoned")
    assert abandoned["events"] > 100


def _exchange_until_dropped(proxy: ProxyProcess, traffic: _Traffic) -> None:
    """Exchange records, with all that is sampled of it, until the journal drops some of that."""
    numbers = itertools.count()

    def dropped() -> bool:
        traffic.exchange(b"%d" % next(numbers))
        return _dropped(proxy) > 0

    until(dropped, "events are dropped", _SECONDS)
    traffic.exchange(b"still")


def _dropped(proxy: ProxyProcess) -> float:
    return proxy.metric("leader_hints_journal_dropped_total")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system with room for next to nothing."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with mounted_small_disk(folder, _TMPFS_BYTES):
        yield folder


def test_a_full_disk_stops_no_traffic_and_the_gap_is_reported_afterwards(
    tmp_path: Path, small_disk: Path
) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (_TMPFS_BYTES - 8192))
    journal = {"kind": "files", "path": str(small_disk), "buffer_bytes": 65536}
    scene = _Scene(tmp_path, {**journal, "sample_latencies": 1})
    with scene.cluster() as cluster, scene.proxy(cluster) as proxy:
        with _Traffic(scene.bootstrap) as traffic:
            _exchange_until_dropped(proxy, traffic)
        (failing,) = proxy.events("journal_failing")
        assert failing["reason"] == "no space left on device"
        filler.unlink()
        (fixed,) = until(lambda: proxy.events("journal_written"), "it is written again", _SECONDS)
        assert fixed["dropped"] > 0

    run = in_order(file_lines(small_disk))
    gaps = [line for line in run if line["event"] == "gap"]
    assert sum(gap["dropped"] for gap in gaps) == fixed["dropped"]
    assert {gap["reason"] for gap in gaps} == {"no space left on device"}
