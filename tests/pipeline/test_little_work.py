from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from leader_hints_report import spark_session
from leader_hints_report.cli import cli
from leader_hints_report.errors import PipelineError
from leader_hints_report.little_work import (
    MOST_JOURNAL,
    MOST_STORED,
    is_little,
    is_little_stored,
)

_QUICK = "-XX:TieredStopAtLevel=1"


def _file(path: Path, size: int) -> Path:
    """A file of that size, which takes no room."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)
    return path


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    _file(tmp_path / "journal" / "a" / "1.jsonl", 1000)
    _file(tmp_path / "journal" / "b" / "1.jsonl", MOST_JOURNAL - 1000)
    return tmp_path / "journal"


def test_a_small_local_journal_is_little_work(journal: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    assert is_little(str(journal), out)
    assert is_little(f"file:{journal}", out)
    assert is_little(str(journal / "b" / "1.jsonl"), out)

    _file(journal / "b" / "2.jsonl", 1)
    assert not is_little(str(journal), out)


def test_a_compressed_file_counts_as_what_it_may_have(journal: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    small = _file(tmp_path / "1.jsonl.gz", MOST_JOURNAL // 10)
    large = _file(tmp_path / "2.jsonl.gz", MOST_JOURNAL // 10 + 1)
    assert is_little(str(small), out)
    assert not is_little(str(large), out)


def test_what_is_stored_already_counts(journal: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    _file(out / "events" / "1.parquet", MOST_STORED)
    assert is_little(str(journal), str(out))
    assert is_little_stored(str(out))

    _file(out / "tables" / "1.parquet", 1)
    assert not is_little(str(journal), str(out))
    assert not is_little_stored(str(out))


@pytest.mark.parametrize(
    "elsewhere", ["kafka://host:9092/topic", "s3a://bucket/journal", "{}/*", "{}/missing"]
)
def test_what_is_not_seen_to_be_little_may_be_much(
    elsewhere: str, journal: Path, tmp_path: Path
) -> None:
    assert not is_little(elsewhere.format(journal), str(tmp_path / "out"))


def test_what_is_stored_elsewhere_may_be_much(journal: Path) -> None:
    assert not is_little_stored("s3a://bucket/out")
    assert not is_little(str(journal), "hdfs://host/out")


@pytest.mark.parametrize("little", [True, False])
@pytest.mark.parametrize("command", ["batch", "html"])
def test_java_compiles_only_quickly_for_little_work(
    command: str, *, little: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the session would be begun with."""
    begun: list[dict[str, str]] = []

    def begin(master: str, conf: dict[str, str], packages: Any, **how: Any) -> None:
        begun.append(spark_session.settings_of(master, conf, packages, **how))
        raise PipelineError("none is begun")

    monkeypatch.setattr(spark_session, "begin", begin)
    out = tmp_path / "out"
    _file(tmp_path / "journal" / "1.jsonl", 1000)
    _file(out / "tables" / "1.parquet", MOST_STORED + (not little))
    arguments = {
        "batch": [f"--journal={tmp_path}/journal", f"--out={out}"],
        "html": [f"--tables={out}", f"--out={tmp_path}/page.html"],
    }
    CliRunner().invoke(cli, [command, *arguments[command], "--master=local[2]"])

    (settings,) = begun
    assert (_QUICK in settings["spark.driver.extraJavaOptions"]) == little


def test_the_user_s_options_of_java_win() -> None:
    name = "spark.driver.extraJavaOptions"
    given = spark_session.settings_of("local", {name: "-Xint"}, little=True)
    assert given[name] == "-Xint"
    assert name not in spark_session.settings_of("yarn", {}, little=True)
