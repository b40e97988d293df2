"""The pipeline reads a journal's topic from real brokers: by batch runs, and as a stream."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.harness.admin import ClusterAdmin
from tests.harness.cluster import RealCluster
from tests.harness.waiting import until
from tests.pipeline.commands_apart import ReportProcess, report_killed, report_running
from tests.pipeline.lines import Event, as_text, error, latency, move, success
from tests.pipeline.written import rows_of
from tests.real.names import ZK_36

_AT_FIRST: Final = [move(0, 0, 1, 2, 5), error(0.01, 1, reason="hold_expired"), latency(0.02, 2, 3)]
_TWICE: Final = _AT_FIRST[1]
#: The last one moves the watermark on behind all others.
_LATER: Final = [
    success(0.05, 0, sidecar="b"),
    latency(0.06, 1, 4.5, sidecar="b"),
    _TWICE,
    latency(3600, 3, 1.0),
]
_TORN: Final = '{"version":1,"event":"recov'
#: Files in the output folder at which the stream is killed: it has begun, and has far to go.
_FILES_AT_DEATH: Final = 25
#: Brokers look for records to be removed each second, from half a minute after their start on.
_RETENTION_S: Final = 90.0
_COMMAND_S: Final = 600


def _produce(cluster: RealCluster, topic: str, lines: Sequence[str]) -> None:
    producer = Producer({"bootstrap.servers": cluster.direct_bootstrap})
    for number, line in enumerate(lines):
        producer.produce(topic, line, partition=number % 2)
    assert producer.flush(30) == 0


def _lines(events: Sequence[Event]) -> list[str]:
    return as_text(events).splitlines()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("cluster", [ZK_36], indirect=True)
def test_a_topic_gives_what_files_give_and_each_record_counts_once(
    cluster: RealCluster, new_topics: Callable[..., list[str]], tmp_path: Path
) -> None:
    (topic,) = new_topics("journal", partitions=2)
    journal = f"--journal=kafka://{cluster.direct_bootstrap}/{topic}"
    batch, stream, files = (tmp_path / name for name in ("batch", "stream", "files"))
    first, later = _lines(_AT_FIRST), [*_lines(_LATER), _TORN]
    file = tmp_path / "journal.jsonl"
    file.write_text("\n".join([*first, *later]))
    with ReportProcess(tmp_path / "report.log") as reports:
        _produce(cluster, topic, first)
        assert reports.run("batch", batch, journal).startswith("new batches: 1; events: 3;")
        before = rows_of(batch)
        assert reports.run("batch", batch, journal).startswith("new batches: 0; events: 0;")
        assert rows_of(batch) == before

        _produce(cluster, topic, later)
        told = reports.run("batch", batch, journal)
        assert told.startswith("new batches: 1; events: 4; quarantined lines: 1;")
        reports.run("batch", files, f"--journal={file}")
        expected = rows_of(files)
        assert len(expected["recoveries"]) == 1
        assert rows_of(batch) == expected

        report_killed("stream", stream, _FILES_AT_DEATH, journal, "--once")
        reports.run("stream", stream, journal, "--once")
        assert rows_of(stream) == expected


def _remove_all(admin: ClusterAdmin, topic: str) -> None:
    """Have brokers remove all records of a topic, as they are older than its retention."""
    consumer = Consumer({"bootstrap.servers": admin.cluster.direct_bootstrap, "group.id": "none"})
    admin.configure_topic(topic, {"retention.ms": "1"})

    def is_empty(partition: int) -> bool:
        first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
        return first == end

    try:
        until(lambda: all(map(is_empty, range(2))), "the records are removed", _RETENTION_S)
    finally:
        consumer.close()
        admin.configure_topic(topic, {"retention.ms": "-1"})


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("cluster", [ZK_36], indirect=True)
@pytest.mark.parametrize("command", ["stream", "batch"])
def test_records_that_retention_removed_end_a_run_or_are_named(
    cluster: RealCluster,
    admin: ClusterAdmin,
    new_topics: Callable[..., list[str]],
    tmp_path: Path,
    command: str,
) -> None:
    (topic,) = new_topics("journal", partitions=2)
    journal = f"--journal=kafka://{cluster.direct_bootstrap}/{topic}"
    flags = [journal, *(["--once"] if command == "stream" else [])]
    out, log = tmp_path / "out", tmp_path / "refused.log"
    with ReportProcess(tmp_path / "report.log") as reports:
        _produce(cluster, topic, _lines([latency(n, n, 1.0) for n in range(4)]))
        reports.run(command, out, *flags)
        # Before it is started again, these come and are removed.
        _produce(cluster, topic, _lines([latency(n, n, 1.0) for n in range(4, 9)]))
        _remove_all(admin, topic)
        _produce(cluster, topic, _lines([latency(n, n, 1.0) for n in range(9, 11)]))
        before = rows_of(out)
        with report_running(command, out, *flags, log=log) as process:
            assert process.wait(_COMMAND_S) == 1
        *_, refused = [
            line
            for line in log.read_text(errors="replace").splitlines()
            if line.startswith("leader-hints-report: ")
        ]
        assert "records of the topic were removed before they were read" in refused
        assert f"(partition {topic}-" in refused
        assert refused.endswith("give --skip-lost")
        assert rows_of(out) == before

        said = reports.run(command, out, *flags, "--skip-lost")
        assert re.search(r"\b5 records of|\bgone: 5$", said.strip())
        # Nothing more is lost.
        said = reports.run(command, out, *flags, "--skip-lost")
        assert not re.search(r"records of|gone", said)
    (of_run,) = rows_of(out)["journal_runs"]
    assert of_run.startswith("('a', 'run-a', '0', '10', '6', '0', '5', ")
