"""`leader-hints local --scenario`: faults that come and go by themselves, and what is told."""

import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer
from kio.index import load_request_schema, load_response_schema

from proxy.apis.keys import ApiKey
from tests.apis.messages import Entity, plain
from tests.core.samples import fetch_request
from tests.harness.connection import CLIENT_ID, BrokerConnection, decode_response
from tests.harness.ports import free_range
from tests.harness.proxyproc import LocalProcess
from tests.harness.waiting import until
from tests.mock.journals import file_lines

_TOPIC, _FETCH, _METADATA = "t", 11, 9
_REFUSED = 6
#: Milliseconds after which the first fault gives way to the second: long enough for the requests
#: that are sent before, also where a machine is busy.
_TURN = 8000
_DELAY = 300
_REQUESTS = 40
_SCENARIO = f"""\
seed: 7
steps:
  - at_ms: 0
    begin:
      flaky: {{action: error, apis: [Fetch], topics: [{_TOPIC}], probability: 0.5}}
  - at_ms: {_TURN}
    end: [flaky]
    begin:
      slow: {{action: delay, apis: [Metadata], client_ids: [{CLIENT_ID}], delay_ms: {_DELAY}}}
"""


class _Played:
    """A `local` that plays the scenario, and a connection to the leader of partition 0."""

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
def _played(folder: Path) -> Iterator[_Played]:
    (folder / "journal").mkdir(parents=True)
    settings, scenario = folder / "settings.yaml", folder / "faults.yaml"
    settings.write_text(f"journal: {{kind: files, path: {folder / 'journal'}}}\n")
    scenario.write_text(_SCENARIO)
    base = free_range(5)
    arguments = ["--cluster", "mock:3", "--allow-faults", "--scenario", str(scenario)]
    arguments += ["--config", str(settings)]
    local = LocalProcess("", base, folder / "local.log", brokers=3, arguments=arguments)
    with local:
        producer = Producer({"bootstrap.servers": local.bootstrap})
        producer.produce(_TOPIC, b"x", partition=0)
        assert producer.flush(20) == 0
        leader = producer.list_topics(_TOPIC, 10).topics[_TOPIC].partitions[0].leader
        with BrokerConnection(("127.0.0.1", base + 1 + leader)) as connection:
            yield _Played(local, connection)


def test_faults_come_and_go_at_their_times_and_by_the_seed(tmp_path: Path) -> None:
    with _played(tmp_path / "first") as first:
        errors = first.fetch(_REQUESTS)
        refused = errors.count(_REFUSED)
        assert set(errors) == {0, _REFUSED}
        assert first.metadata_seconds() < _TURN / 1000

        def slow() -> bool:
            first.metadata_seconds()
            return any(line["action"] == "delay" for line in first.process.events("fault_done"))

        until(slow, "the second step has come")
        assert first.metadata_seconds() >= _DELAY / 1000
        assert set(first.fetch(_REQUESTS)) == {0}
        log = first.process.log
    with _played(tmp_path / "second") as second:
        assert second.fetch(_REQUESTS) == errors

    faults = [f for f in file_lines(tmp_path / "first" / "journal") if f["event"] == "fault"]
    errors_told = [fault for fault in faults if fault["action"] == "error"]
    assert len(errors_told) == refused
    wanted = {"api": "Fetch", "topic": _TOPIC, "partition": 0, "error": 6, "hint": "none"}
    assert all((wanted | {"client_id": CLIENT_ID}).items() <= told.items() for told in errors_told)
    delays = [fault for fault in faults if fault["action"] == "delay"]
    assert len(delays) >= 2
    assert len(faults) == len(errors_told) + len(delays)
    assert errors_told[-1]["time"] < delays[0]["time"]
    lines = map(json.loads, log.read_text().splitlines())
    assert sum(line["event"] == "fault_done" for line in lines) == len(faults)
