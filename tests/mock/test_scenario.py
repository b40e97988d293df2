"""`leader-hints local --scenario`: faults that begin and end by themselves, and their reports."""

import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from confluent_kafka import Producer
from kio.index import load_request_schema, load_response_schema

from leader_hints.apis.keys import ApiKey
from tests.apis.messages import Entity, plain
from tests.core.samples import fetch_request
from tests.harness.connection import CLIENT_ID, BrokerConnection, decode_response
from tests.harness.ports import free_range
from tests.harness.proxyproc import LocalProcess
from tests.harness.waiting import until
from tests.mock.journals import file_lines
from tests.observe.journal_lines import Line

_TOPIC, _FETCH, _METADATA = "t", 11, 9
_REFUSED = 6
#: Milliseconds.
_TURN, _DELAY = 3000, 300
_REQUESTS = 40
_SECONDS = 60.0
_FLAKY = f"""\
seed: 7
steps:
  - at_ms: 0
    begin:
      flaky: {{action: error, apis: [Fetch], topics: [{_TOPIC}], probability: 0.5}}
"""
#: The first fault gives way to the second.
_FLAKY_THEN_SLOW = f"""{_FLAKY}\
  - at_ms: {_TURN}
    end: [flaky]
    begin:
      slow: {{action: delay, apis: [Metadata], client_ids: [{CLIENT_ID}], delay_ms: {_DELAY}}}
"""


class _Played:
    """A `local` that plays a scenario, and a connection to the leader of partition 0."""

    def __init__(self, process: LocalProcess, connection: BrokerConnection) -> None:
        self.process = process
        self._connection = connection
        self._numbers = itertools.count(1)

    def fetch(self, count: int) -> list[int]:
        """Fetch so often; return the partition's errors."""
        return [self._fetch() for _ in range(count)]

    def _fetch(self) -> int:
        asked = fetch_request(_FETCH, next(self._numbers), {(_TOPIC, 0): -1}, client_id=CLIENT_ID)
        self._connection.send_frame(asked[4:])
        kind = load_response_schema(ApiKey.FETCH, _FETCH)
        answer: Entity = decode_response(self._connection.read_frame(), kind)
        ((partition,),) = [topic.partitions for topic in answer.responses]
        code: int = partition.error_code.value
        return code

    def metadata_seconds(self) -> float:
        """Ask for Metadata; return how long the answer took."""
        begun = time.monotonic()
        kind = load_response_schema(ApiKey.METADATA, _METADATA)
        self._connection.ask(plain(load_request_schema(ApiKey.METADATA, _METADATA)), kind)
        return time.monotonic() - begun


@contextmanager
def _played(folder: Path, faults: str) -> Iterator[_Played]:
    (folder / "journal").mkdir(parents=True)
    settings, scenario = folder / "settings.yaml", folder / "faults.yaml"
    settings.write_text(f"journal: {{kind: files, path: {folder / 'journal'}}}\n")
    scenario.write_text(faults)
    base = free_range(5)
    arguments = ["--cluster", "mock:3", "--allow-faults", "--scenario", str(scenario)]
    arguments += ["--config", str(settings)]
    local = LocalProcess("", base, folder / "local.log", brokers=3, arguments=arguments)
    with local:
        producer = Producer({"bootstrap.servers": local.bootstrap})
        producer.produce(_TOPIC, b"x", partition=0)
        assert producer.flush(_SECONDS) == 0
        leader = producer.list_topics(_TOPIC, _SECONDS).topics[_TOPIC].partitions[0].leader
        with BrokerConnection(("127.0.0.1", base + 1 + leader)) as connection:
            yield _Played(local, connection)


def _faults(folder: Path, action: str) -> list[Line]:
    """What a scenario that was played in a folder has reported of its faults of an action."""
    faults = [line for line in file_lines(folder / "journal") if line["event"] == "fault"]
    told = (folder / "local.log").read_text().splitlines()
    assert sum(json.loads(line)["event"] == "fault_done" for line in told) == len(faults)
    return [fault for fault in faults if fault["action"] == action]


def test_the_seed_says_which_requests_meet_a_fault(tmp_path: Path) -> None:
    with _played(tmp_path / "first", _FLAKY) as first:
        errors = first.fetch(_REQUESTS)
        assert set(errors) == {0, _REFUSED}
    with _played(tmp_path / "second", _FLAKY) as second:
        assert second.fetch(_REQUESTS) == errors

    told = _faults(tmp_path / "first", "error")
    assert len(told) == errors.count(_REFUSED)
    wanted = {"api": "Fetch", "topic": _TOPIC, "partition": 0, "error": 6, "hint": "none"}
    assert all((wanted | {"client_id": CLIENT_ID}).items() <= line.items() for line in told)
    assert not _faults(tmp_path / "first", "delay")


def test_faults_come_and_go_at_their_times(tmp_path: Path) -> None:
    refused = 0
    with _played(tmp_path, _FLAKY_THEN_SLOW) as played:

        def slow() -> bool:
            nonlocal refused
            refused += played.fetch(1).count(_REFUSED)
            played.metadata_seconds()
            return any(line["action"] == "delay" for line in played.process.events("fault_done"))

        until(slow, "the second step has come")
        assert played.metadata_seconds() >= _DELAY / 1000
        assert set(played.fetch(_REQUESTS)) == {0}
        begun = min(line["timestamp"] for line in played.process.events("listening"))

    errors, delays = _faults(tmp_path, "error"), _faults(tmp_path, "delay")
    assert len(errors) == refused
    assert len(delays) >= 2
    assert all(error["time"] < delays[0]["time"] for error in errors)
    waited = datetime.fromisoformat(delays[0]["time"]) - datetime.fromisoformat(begun)
    # The clock of these times may be set; that of the steps is not.
    assert waited > timedelta(milliseconds=_TURN / 2)
