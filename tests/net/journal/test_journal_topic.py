"""Properties for the journal's Kafka client: what is refused, and that no secret is shown."""

from pathlib import Path

import pytest

from leader_hints.errors import ConfigurationError
from leader_hints.net.journal.journal_topic import KafkaSink, read_properties


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
        ("security.protocol", 'Invalid value for configuration property "security.protocol"'),
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
