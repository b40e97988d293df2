"""What DuckDB and Spark store of files together is what Spark alone would."""

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession

from leader_hints_report.journal import plain_lines
from leader_hints_report.journal.events import STORED
from leader_hints_report.journal.files import File, Files
from leader_hints_report.journal.format import COLUMNS, REQUIRED
from leader_hints_report.journal.plain_lines import store
from leader_hints_report.journal.sources import files_batch, read_files
from leader_hints_report.store.folder import Store
from tests.pipeline.journal.test_events import BAD
from tests.pipeline.lines import error, event, latency, move, read, replica, success
from tests.pipeline.test_recorded import RECORDED

_EVENTS = (
    event("start", 0, 0, software="leader-hints", software_version="1", hints="on"),
    event("stop", 0, 9),
    event("gap", 0, 1, reason="full", dropped=1, first_seq=0, last_seq=0),
    event("asked", 0, 4, route="r", client_id="", software="", software_version="", asked="0:1-2"),
    error(0, 1, epoch_before=4, hold_ms=12),
    success(0, 2, recovery_ms=1.5),
    move(0, 2, 1, 2, 5),
    latency(0, 3, 2.5),
    read(0, 5, 100),
    replica(0, 6),
)
#: Values as texts of JSON, and what looks like them.
_NUMBERS = (
    *("0", "1", "-1", "-0", "01", "+1", "1.0", "1e0", "1E2", "1.", ".5", "0x1", "2", "0.5"),
    *("2147483647", "2147483648", "-2147483648", "-2147483649", "281474976710656", "1" * 400),
    *("281474976710657", "9223372036854775807", "9223372036854775808", "18446744073709551616"),
    *("0.1", "1e-400", "1e400", "86400000.0", "86400000.001", "8.64E7", "5e-324", "-0.001"),
    *("2.2250738585072011e-308", "0.30000000000000004", "123456789.12345678901234567890"),
    *("31622400000", "31622400000.1", "NaN", "Infinity", "-Infinity", "+INF", '"NaN"', '"1"'),
)
_TEXTS = (
    *('"Infinity"', "null", "true", "false", "True", '"true"', '""', '" "', "{}", "[]", "x"),
    *('{"a":1}', "[1,2]", "'x'", r'"\u0041"', r'"\ud800"', r'"\ud83d\ude00"', r'"\u0000"'),
    *(r'"\""', r'"\/"', r'"\x"', r'"\n"', '"é"', '"\u2028"', '"\U0001f600"', '"\ufeff"'),
    *('"\x7f"', '"\t"', '"\x00"', '"\x85"', '":x"', '"x:"', '"a,b"', '"{}"', '"\',"', '"#"'),
    *('"%20"', '"NULL"', '"\ufffd"', '"latency"', '"error"', '"later"', '"stop"', '"start"'),
)
_TIMES = tuple(
    f'"{time}"'
    for time in (
        "2026-01-02T03:04:05.000006Z", "2026-02-29T00:00:00.000000Z",
        "2024-02-29T23:59:59.999999Z", "2026-01-02T24:00:00.000000Z",
        "2026-01-02T23:59:60.000000Z", "2026-01-02 03:04:05.000006Z",
        "2026-01-02T03:04:05.000006z", "2026-01-02T03:04:05,000006Z",
        "1900-01-01T00:00:00.000000Z", "1899-12-31T23:59:59.999999Z",
        "2199-12-31T23:59:59.999999Z", "2200-01-01T00:00:00.000000Z",
        "2026-00-02T03:04:05.000006Z", "2026-1-02T03:04:05.0000006Z",
    )
)  # fmt: skip


def _value(chance: Random, name: str) -> str:
    """A value that a column of that name may have, or for once any."""
    if chance.random() < 0.2:
        return chance.choice(_NUMBERS + _TEXTS + _TIMES)
    if name == "time":
        return chance.choice(_TIMES)
    of = COLUMNS.get(name)
    return chance.choice(_NUMBERS if of and of.simpleString() != "string" else _TEXTS)


def _changed(chance: Random) -> str:
    """A line, and mostly something odd in it."""
    members = [
        (name, json.dumps(value, ensure_ascii=False))
        for name, value in chance.choice(_EVENTS).items()
    ]
    for _ in range(chance.choice((0, 1, 1, 1, 2))):
        at = chance.randrange(len(members))
        name = chance.choice([*COLUMNS])
        match chance.randrange(9):
            case 0 | 1 | 2:
                members[at] = (members[at][0], _value(chance, members[at][0]))
            case 3 | 4:
                members.insert(at, (name, _value(chance, name)))
            case 5:
                members.append((name, json.dumps(chance.choice(["x", 1, 0.5, True]))))
            case 6:
                del members[at]
            case 7:
                members.append((chance.choice(("new", "SEQ", "s\\u0065q", "")), "1"))
            case 8:
                chance.shuffle(members)
    comma, colon = chance.choice(((",", ":"),) * 8 + ((", ", ": "), (",,", ":"), (",\t", ":")))
    line = "{" + comma.join(f'"{name}"{colon}{value}' for name, value in members) + "}"
    match chance.randrange(16):
        case 0:
            at = chance.randrange(len(line))
            return line[:at] + chance.choice('\\"{}[]:,0e x\r\x00') + line[at + 1 :]
        case 1:
            return line[: chance.randrange(len(line))]
        case 2:
            return chance.choice((" ", "\ufeff", "[", "#", "")) + line + chance.choice(" ,;}]\r1")
    return line


def _rows(session: SparkSession, files: list[File], out: Path) -> list[str]:
    """The rows that the files are stored as, in an order of their own."""
    store = Store(session, str(out))
    store.take_files(files_batch(files), files)
    return _sorted(session.read.schema(STORED).parquet(f"{out}/events/*"))


def _sorted(rows: DataFrame) -> list[str]:
    text = rows.selectExpr(*(f"cast(`{name}` AS string)" for name in STORED.names))
    return sorted(map(str, text.collect()))


def _by_spark(session: SparkSession, files: list[File]) -> list[str]:
    return _sorted(read_files(session, files))


def _in_duckdb(lines: list[str], folder: Path) -> dict[str, int]:
    """How many rows of each part DuckDB makes of lines."""
    (folder / "a.jsonl").write_text("".join(line + "\n" for line in lines))
    assert store({f"{folder}/a.jsonl": 0}, f"{folder}/out", 2) == []
    rows = f"read_parquet('{folder}/out/*/*/*.parquet', hive_partitioning = true)"
    return dict(_asked(f"SELECT part, count(*) FROM {rows} GROUP BY part"))


def _asked(sql: str) -> list[tuple[Any, ...]]:
    return duckdb.connect().execute(sql).fetchall()


@pytest.mark.parametrize("seed", range(3))
def test_any_line_is_stored_as_spark_stores_it(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance = Random(seed)
    lines = [_changed(chance) for _ in range(5000)]
    lines += [line for some in BAD.values() for line in some] + ["", "  ", "\r", "\ufeff"]
    journal = tmp_path / "run=1"
    journal.mkdir()
    text = "\n".join(line.replace("\r", "") for line in lines)
    (journal / "a.jsonl").write_bytes(text.encode())
    assert store({f"{journal}/a.jsonl": len(text)}, f"{tmp_path}/alone", 2) == []
    files = Files(spark).found(str(journal))
    assert _rows(spark, files, tmp_path / "out") == _by_spark(spark, files)


def test_what_sidecars_write_is_plain(tmp_path: Path) -> None:
    lines = [json.dumps(one, separators=(",", ":"), ensure_ascii=False) for one in _EVENTS]
    parts = _in_duckdb(lines, tmp_path)
    assert parts == {"rest": 4, "encounter": 2, "move": 1, "latency": 1, "read": 2}


def test_what_sidecars_wrote_is_plain(tmp_path: Path) -> None:
    text = b"".join(gzip.decompress(file.read_bytes()) for file in RECORDED.glob("*.jsonl.gz"))
    assert not {"bad", "odd"} & {*_in_duckdb(text.decode().splitlines(), tmp_path)}


def test_a_line_cut_anywhere_needs_no_spark(spark: SparkSession, tmp_path: Path) -> None:
    """What a process leaves that was killed as it wrote."""
    whole = [json.dumps(one, separators=(",", ":"), ensure_ascii=False) for one in _EVENTS]
    cut = [line[:at] for line in whole for at in range(1, len(line))]
    assert _in_duckdb(cut, tmp_path) == {"bad": len(cut)}
    files = Files(spark).found(f"{tmp_path}/*.jsonl")
    assert _rows(spark, files, tmp_path / "out") == _by_spark(spark, files)


@pytest.mark.parametrize("line", ['{"' + "é" * 5000, '{"run":"}', " {", "["])
def test_a_line_that_only_looks_cut_is_odd(tmp_path: Path, line: str) -> None:
    assert _in_duckdb([line], tmp_path) == {"odd": 1}


def test_on_one_machine_duckdb_stores_them(spark: SparkSession, tmp_path: Path) -> None:
    lines = [json.dumps(one, separators=(",", ":")) for one in (*_EVENTS, latency(0, 7, -1))]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    _rows(spark, Files(spark).found(str(tmp_path)), tmp_path / "out")
    written = _asked(
        f"""
        SELECT file_name LIKE '%/part=bad/%', created_by LIKE 'DuckDB%'
        FROM parquet_file_metadata('{tmp_path}/out/events/*/*/*/*.parquet')
        """
    )
    assert {*written} == {(False, True), (True, False)}


@pytest.mark.parametrize("name", ["version", "run", *REQUIRED["latency"]])
def test_a_line_that_lacks_a_column_is_odd(tmp_path: Path, name: str) -> None:
    lacking: dict[str, Any] = {key: value for key, value in _EVENTS[7].items() if key != name}
    assert _in_duckdb([json.dumps(lacking, separators=(",", ":"))], tmp_path) == {"odd": 1}


@pytest.mark.parametrize(
    "odd", [b"\xff", b"\r", b"\r\n", b"\x00", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"x" * 3_000_000]
)
def test_bytes_that_are_no_text_of_lines_do_not_matter(
    spark: SparkSession, tmp_path: Path, odd: bytes
) -> None:
    line = json.dumps(_EVENTS[7], separators=(",", ":")).encode()
    texts = (
        odd + line + b"\n" + line,
        line + b"\n" + line[:40] + odd + line[40:] + b"\n" + line,
        line + odd + line,
        line + b"\n" + line + odd,
        line + b"\n" + line[:-1],
    )
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.jsonl").write_bytes(text)
    files = Files(spark).found(str(tmp_path))
    assert _rows(spark, files, tmp_path / "out") == _by_spark(spark, files)


def test_each_portion_may_have_odd_lines(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of twelve portions has some, and one has bytes that are no text."""
    monkeypatch.setattr(plain_lines, "_AT_ONCE", 1)
    line = json.dumps(_EVENTS[7], separators=(",", ":"))
    for number in range(12):
        odd = "nonsense" if number % 2 else json.dumps(_EVENTS[4])
        (tmp_path / f"{number:02}.jsonl").write_text(f"{line}\n{odd} {number}\n")
    (tmp_path / "06.jsonl").write_bytes(f"{line}\n".encode() + b"\xff\n")
    files = Files(spark).found(str(tmp_path))
    assert _rows(spark, files, tmp_path / "out") == _by_spark(spark, files)
    assert not [*tmp_path.glob("out/events/*/part=odd")]


@pytest.mark.parametrize("name", ["a b.jsonl", "a*.jsonl", "a[b].jsonl", "ä.jsonl", "a%20.jsonl"])
def test_names_of_files_do_not_matter(spark: SparkSession, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("nonsense\n")
    (tmp_path / "ab.jsonl").write_text("nonsense\n")
    system = Files(spark)
    files = [file for file in system.matching(f"{tmp_path}/*") if file.path.endswith("jsonl")]
    assert _rows(spark, files, tmp_path / "out") == _by_spark(spark, files)


def test_a_file_that_was_removed_is_left_out(spark: SparkSession, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(_EVENTS[7], separators=(",", ":")))
    files = Files(spark).found(str(tmp_path))
    (tmp_path / "a.jsonl").unlink()
    assert len(_rows(spark, files, tmp_path / "out")) == 1
