"""Logs: JSON lines or a console, the level, and text that tries to break a line or a terminal."""

import contextlib
import io
import json
import os
import pty
import select
import socket
import threading
import tty
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from leader_hints.observe.logs import configure_logs, escape
from tests.harness.small_disk import mounted_small_disk

HOSTILE = "orders\x1b[2J\r\n{}\x7f\x9b31m\u2028\u202e\\x1b"
_SECONDS = 10.0
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=[]))


@pytest.fixture(autouse=True)
def _reset_structlog() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def _log(log_format: str, **fields: object) -> str:
    stream = io.StringIO()
    configure_logs("info", log_format, stream)
    structlog.get_logger().info("bad_client_bytes", **fields)
    return stream.getvalue()


@pytest.mark.parametrize("log_format", ["json", "auto"])
def test_a_stream_that_is_no_terminal_gets_json_lines(log_format: str) -> None:
    line = _log(log_format, route="a", hold_ms=1.5)

    event = json.loads(line)
    assert [*event][:3] == ["event", "level", "timestamp"]
    moment = datetime.fromisoformat(event.pop("timestamp"))
    assert event == {"event": "bad_client_bytes", "level": "info", "route": "a", "hold_ms": 1.5}
    assert moment.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - moment) < timedelta(minutes=1)
    assert line.endswith("}\n")


def test_console_without_a_terminal_has_no_colours() -> None:
    line = _log("console", route="a")

    assert "bad_client_bytes" in line
    assert "route=a" in line
    assert line.removesuffix("\n").isprintable()


@pytest.mark.parametrize(("no_colour", "coloured"), [("", True), ("1", False)])
def test_a_terminal_gets_the_console_with_colours(
    monkeypatch: pytest.MonkeyPatch, no_colour: str, coloured: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", no_colour)
    main, side = pty.openpty()
    with open(side, "w", encoding="utf-8") as terminal:
        configure_logs("info", "auto", terminal)
        structlog.get_logger().info("listening", route="a")
        shown = os.read(main, 65536).decode()
    os.close(main)

    assert "listening" in shown
    assert not shown.startswith("{")
    assert ("\x1b[" in shown) is coloured


@pytest.mark.parametrize(
    ("level", "written"),
    [
        ("debug", ["debug", "info", "warning", "error"]),
        ("info", ["info", "warning", "error"]),
        ("warning", ["warning", "error"]),
        ("error", ["error"]),
    ],
)
def test_what_is_below_the_level_is_not_written(level: str, written: list[str]) -> None:
    stream = io.StringIO()
    configure_logs(level, "json", stream)
    logger = structlog.get_logger()
    for name in ("debug", "info", "warning", "error"):
        getattr(logger, name)("event")

    assert [json.loads(line)["level"] for line in stream.getvalue().splitlines()] == written


@given(text=ANY_TEXT)
def test_json_is_one_ascii_line_that_gives_any_text_back(text: str) -> None:
    line = _log("json", client_id=text, nested={"topics": [text]})

    body = line.removesuffix("\n")
    assert body.isascii()
    assert body.isprintable()
    assert json.loads(body)["client_id"] == text
    assert json.loads(body)["nested"] == {"topics": [text]}


@given(text=ANY_TEXT)
def test_the_console_is_one_printable_line_for_any_text(text: str) -> None:
    line = _log(
        "console",
        client_id=text,
        nested={"topics": [text]},
        raw=text.encode("utf-16", "surrogatepass"),
    )

    assert line.removesuffix("\n").isprintable()


@given(one=ANY_TEXT, other=ANY_TEXT)
def test_two_texts_never_look_alike(one: str, other: str) -> None:
    assert (escape(one) == escape(other)) == (one == other)


def test_escapes_are_those_of_python() -> None:
    assert escape(HOSTILE) == r"orders\x1b[2J\r\n{}\x7f\x9b31m\u2028\u202e\\x1b"
    assert escape("Zürich 東京") == "Zürich 東京"


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_a_traceback_cannot_break_a_terminal(log_format: str) -> None:
    stream = io.StringIO()
    configure_logs("info", log_format, stream)
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        structlog.get_logger().exception("bug", topic=HOSTILE)

    lines = stream.getvalue().splitlines()
    assert "Traceback (most recent call last)" in stream.getvalue()
    assert all(line.isprintable() for line in lines)
    assert len(lines) == 1 if log_format == "json" else len(lines) > 1


def test_values_of_other_types_do_not_fail() -> None:
    event = json.loads(_log("json", error=OSError(111, "refused"), raw=b"\x00", nothing=None))

    assert event["error"] == "[Errno 111] refused"
    assert event["raw"] == "b'\\x00'"
    assert event["nothing"] is None


@pytest.mark.parametrize("kind", ["pipe", "socket", "terminal", "raw terminal"])
def test_nobody_waits_for_a_reader_that_reads_nothing(kind: str) -> None:
    """The event loop writes the log: it would stop all links, and signals, until somebody reads."""
    reader, writer = _ends(kind)
    with open(writer, "w", encoding="utf-8") as stream:
        configure_logs("info", "json", stream)
        log = structlog.get_logger()

        def write() -> None:
            for number in range(2000):
                log.info("event", number=number, text="x" * 6000)

        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        thread.join(_SECONDS)
        assert not thread.is_alive()
        data = _read(reader)
        log.info("event", number=2000)
        data += _read(reader)
    os.close(reader)
    # All lines that came are whole, in order, and the last one is among them.
    numbers = [json.loads(line)["number"] for line in data.splitlines()]
    assert numbers == sorted(numbers)
    assert numbers[0] == 0
    assert numbers[-1] == 2000


def _ends(kind: str) -> tuple[int, int]:
    if kind == "pipe":
        return os.pipe()
    if kind == "socket":
        one, other = socket.socketpair()
        return one.detach(), other.detach()
    main, side = pty.openpty()
    # As it comes each line's end takes one byte more than is written.
    if kind == "raw terminal":
        tty.setraw(side)
    return main, side


def _read(reader: int) -> bytes:
    """What has come."""
    data = b""
    while select.select([reader], [], [], 0.1)[0]:
        data += os.read(reader, 1 << 20)
    return data


def test_a_reader_that_has_gone_stops_nothing() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with pytest.raises(BrokenPipeError):  # so the lines below cannot be written either
        os.write(writer, b"x")
    stream = os.fdopen(writer, "w", encoding="utf-8")
    configure_logs("info", "json", stream)

    for _ in range(3):
        structlog.get_logger().info("listening", padding="x" * 10000)

    with contextlib.suppress(BrokenPipeError):
        stream.close()


def test_a_closed_stream_stops_nothing() -> None:
    stream = io.StringIO()
    configure_logs("info", "json", stream)
    stream.close()

    structlog.get_logger().info("listening")


def test_a_full_disk_loses_whole_lines_and_those_after_it_are_written(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    with mounted_small_disk(folder, 16_384):
        (folder / "filler").write_bytes(bytes(8192))
        with (folder / "log").open("w", encoding="utf-8") as stream:
            configure_logs("info", "json", stream)
            for number in range(1000):
                structlog.get_logger().info("before", number=number, padding="x" * 1000)
            (folder / "filler").unlink()
            structlog.get_logger().info("after")
        lines = (folder / "log").read_text(encoding="utf-8").splitlines()
    told = [json.loads(line) for line in lines]
    assert told[-1]["event"] == "after"
    assert 1 < len(told) < 1000
