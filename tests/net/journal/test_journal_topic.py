"""The journal's Kafka client: properties that are refused, secrets, and lines too large."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from leader_hints.errors import BrokerError, ConfigurationError
from leader_hints.net.journal import journal_topic
from leader_hints.net.journal.journal_topic import KafkaSink, read_properties
from leader_hints.net.journal.sink import LinesLostError


def _file(folder: Path, text: str) -> Path:
    file = folder / "kafka.properties"
    file.write_text(text, encoding="utf-8")
    return file


def test_properties_are_lines_with_comments(tmp_path: Path) -> None:
    text = "# secret\n\n sasl.username = me\nsasl.password=a=b # c\ncompression.type=lz4\n"

    assert read_properties(_file(tmp_path, text)) == {
        "sasl.username": "me",
        "sasl.password": "a=b # c",
        "compression.type": "lz4",
    }


def test_every_bad_line_is_named_and_no_value_is_reported(tmp_path: Path) -> None:
    text = "acks=hunter2\nhunter2\nlinger.ms=5\nlinger.ms=hunter2\n=hunter2\nclient.id=hunter2\n"
    text += "transactional.id=hunter2\n"
    file = _file(tmp_path, text)
    with pytest.raises(ConfigurationError) as refused:
        read_properties(file)

    assert refused.value.problems == (
        f"journal.properties_file: {file}, line 1: acks is set by the journal; remove the line",
        f"journal.properties_file: {file}, line 2: it is no NAME=VALUE",
        f"journal.properties_file: {file}, line 4: linger.ms stands twice",
        f"journal.properties_file: {file}, line 5: it is no NAME=VALUE",
        f"journal.properties_file: {file}, line 6: client.id is set by the journal; remove the "
        "line",
        f"journal.properties_file: {file}, line 7: the journal has no transactions; remove the "
        "line",
    )


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot read .*none: No such file or directory"):
        read_properties(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="it is not UTF-8"):
        read_properties(tmp_path / "binary")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no.such.property", 'No such configuration property: "no.such.property"'),
        ("security.protocol", 'Invalid value "***" for configuration property "security.protocol"'),
        ("batch.size", 'Invalid value for configuration property "batch.size"'),
    ],
)
def test_what_librdkafka_refuses_is_reported_without_the_value(
    name: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        KafkaSink("127.0.0.1:9", "t", "c", "k", {name: "hunter2"})

    assert "hunter2" not in str(refused.value)
    assert said in str(refused.value)
    assert "hunter2" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("compression.codec", 'hunter2 "hunter3" for "hunter4'),
        ("compression.codec", "hunter2" * 200),
        ("sasl.mechanisms", "hunter2 hunter3"),
        ("partitioner", "hunter2"),
        ("debug", "msg,hunter2,topic"),
        ("topic.blacklist", "[hunter2"),
        ("plugin.library.paths", "/hunter2"),
    ],
)
def test_a_secret_at_a_wrong_place_is_not_reported_in_part(name: str, secret: str) -> None:
    """librdkafka quotes it in several ways, and cuts it."""
    with pytest.raises(ConfigurationError) as refused:
        KafkaSink("127.0.0.1:9", "t", "c", "k", {name: secret})
    assert "hunter" not in str(refused.value)
    assert "***" in str(refused.value)


def test_no_secret_is_reported_that_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_topic, "_PATIENCE", 0.5)
    properties = {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "principal=me hunter2=yes",
    }
    sink = KafkaSink("127.0.0.1:9", "t", "c", "k", properties)
    with pytest.raises(BrokerError, match="Unrecognized") as refused:
        sink.write([b"a line"])
    assert "hunter2" not in str(refused.value)


_TOO_LARGE = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)


class _Broker:
    """In place of librdkafka: sends all lines between two flushes at once, to a topic that takes
    ``most`` bytes; ``longest``: of a line that librdkafka takes itself.
    """

    def __init__(self, most: int, longest: int) -> None:
        self.taken: list[bytes] = []
        self.flushes = 0
        self.most = most
        self._longest = longest
        self._waiting: list[tuple[bytes, Any]] = []

    def produce(self, _topic: str, line: bytes, _key: bytes, on_delivery: Any) -> None:
        if len(line) > self._longest:
            raise KafkaException(_TOO_LARGE)
        self._waiting.append((line, on_delivery))

    def flush(self, _patience: float) -> None:
        self.flushes += 1
        waiting, self._waiting = self._waiting, []
        too_large = sum(len(line) for line, _ in waiting) > self.most
        if not too_large:
            self.taken += [line for line, _ in waiting]
        for _, delivered in waiting:
            delivered(_TOO_LARGE if too_large else None, None)


def _sink(monkeypatch: pytest.MonkeyPatch, most: int, longest: int = 1000) -> tuple[KafkaSink, Any]:
    broker = _Broker(most, longest)
    monkeypatch.setattr(journal_topic, "Producer", lambda _: broker)
    return KafkaSink("127.0.0.1:9", "t", "c", "k", {}), broker


def test_lines_that_are_too_large_together_are_written_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """librdkafka sends the same again, for ever: nothing was written any more after a storm."""
    sink, broker = _sink(monkeypatch, most=100)
    lines = [b"%010d" % number for number in range(64)]
    sink.write(lines)
    assert broker.taken == lines
    # They are not tried all at once again.
    before = broker.flushes
    sink.write(lines[:8])
    assert broker.flushes == before + 1


def test_as_many_lines_as_before_are_written_at_once_when_the_topic_takes_more_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One line at a time is slower than a sidecar writes: 93 a second with round trips of 10 ms."""
    sink, broker = _sink(monkeypatch, most=10)
    lines = [b"%010d" % number for number in range(3000)]
    sink.write(lines[:20])
    assert broker.flushes > 20
    broker.most = 1_000_000
    sink.write(lines[20:1500])
    before = broker.flushes
    sink.write(lines[1500:])
    assert broker.flushes < before + 10
    assert broker.taken == lines


def test_to_try_more_lines_at_once_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    sink, broker = _sink(monkeypatch, most=10)
    lines = [b"%010d" % number for number in range(500)]
    sink.write(lines)
    assert broker.taken == lines
    assert broker.flushes < 1.2 * len(lines) + 20


@pytest.mark.parametrize(("most", "longest"), [(100, 1000), (1000, 100)])
def test_a_line_that_is_too_large_by_itself_is_lost_alone(
    monkeypatch: pytest.MonkeyPatch, most: int, longest: int
) -> None:
    sink, broker = _sink(monkeypatch, most, longest)
    large = b"x" * 101
    lines = [b"%010d" % number for number in range(16)]
    with pytest.raises(LinesLostError, match="Message size too large") as lost:
        sink.write([*lines[:4], large, *lines[4:]])
    assert (lost.value.first, lost.value.last) == (large, large)
    sink.write([*lines[:4], large, *lines[4:]])
    assert sorted(broker.taken) == lines
    sink.write([b"next"])
    assert broker.taken[-1] == b"next"
