"""The journal's files: finished ones are whole, a full disk tears nothing, the bound is kept."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.net.journal_files import FileSink
from tests.harness.small_disk import mounted_small_disk

_TMPFS_BYTES = 65_536


class _Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _sink(folder: Path, run: str = "r1", **values: Any) -> FileSink:
    times = (f"20260102T{second:06}Z" for second in range(1_000_000))
    return FileSink(
        folder,
        values.pop("name", "side.car-1"),
        run,
        **{
            "file_bytes": 1000,
            "file_seconds": 60.0,
            "kept_bytes": 1 << 20,
            "clock": _Clock(),
            "stamp": lambda: next(times),
            **values,
        },
    )


def _finished(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jsonl"))


def _open(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.open"))


def _lines(*files: Path) -> list[bytes]:
    return [line for file in files for line in file.read_bytes().splitlines()]


def test_lines_are_in_the_file_at_once_and_the_file_is_finished_at_the_end(tmp_path: Path) -> None:
    sink = _sink(tmp_path)
    sink.write([b"one", b"two"])
    sink.write([b"three"])

    (file,) = _open(tmp_path)
    assert file.name == "side.car-1_20260102T000000Z_r1_000001.jsonl.open"
    assert file.read_bytes() == b"one\ntwo\nthree\n"
    assert not _finished(tmp_path)
    sink.close()
    assert not _open(tmp_path)
    (file,) = _finished(tmp_path)
    assert file.name == "side.car-1_20260102T000000Z_r1_000001.jsonl"
    assert file.read_bytes() == b"one\ntwo\nthree\n"
    assert file.stat().st_mode & 0o007 == 0


def test_without_lines_there_is_no_file(tmp_path: Path) -> None:
    sink = _sink(tmp_path)
    sink.write([])
    sink.close()

    assert not list(tmp_path.iterdir())


def test_a_large_file_is_finished_and_another_begun(tmp_path: Path) -> None:
    sink = _sink(tmp_path, file_bytes=100)
    for number in range(50):
        sink.write([b"%019d" % number])
    sink.close()

    files = _finished(tmp_path)
    assert [file.stat().st_size for file in files] == [100] * 10
    assert _lines(*files) == [b"%019d" % number for number in range(50)]


def test_an_old_file_is_finished_without_another_line(tmp_path: Path) -> None:
    clock = _Clock()
    sink = _sink(tmp_path, clock=clock)
    sink.write([b"one"])
    clock.now += 59
    sink.write([])
    assert not _finished(tmp_path)
    clock.now += 1
    sink.write([])

    assert _lines(*_finished(tmp_path)) == [b"one"]
    assert not _open(tmp_path)


def test_the_oldest_are_removed_and_no_other_sidecars(tmp_path: Path) -> None:
    other = _sink(tmp_path, name="side.car-10")
    other.write([b"x" * 999])
    other.close()
    sink = _sink(tmp_path, kept_bytes=250, file_bytes=100)
    for number in range(50):
        sink.write([b"%019d" % number])
    sink.close()
    # The next run takes over what is left of the one before.
    again = _sink(tmp_path, "r2", kept_bytes=250, stamp=lambda: "20270101T000000Z")
    again.write([b"%019d" % 50])
    again.close()

    mine = [file for file in _finished(tmp_path) if file.name.startswith("side.car-1_")]
    assert _lines(*mine) == [b"%019d" % number for number in range(40, 51)]
    assert len(_finished(tmp_path)) == len(mine) + 1


def test_a_file_that_somebody_else_took_away_is_no_trouble(tmp_path: Path) -> None:
    sink = _sink(tmp_path, file_bytes=10)
    for number in range(3):
        sink.write([b"%019d" % number])
        for file in _finished(tmp_path):
            file.unlink()
    sink.close()

    assert _lines(*_finished(tmp_path)) == [b"%019d" % 2]


def test_a_killed_runs_file_is_finished_and_never_added_to(tmp_path: Path) -> None:
    torn = tmp_path / "side.car-1_20250101T000000Z_r0_000003.jsonl.open"
    torn.write_bytes(b'one\n{"tor')
    foreign = tmp_path / "another_20250101T000000Z_r0_000003.jsonl.open"
    foreign.write_bytes(b"two\n")
    sink = _sink(tmp_path)
    sink.write([b"three"])
    sink.close()

    assert foreign.exists()
    first, second = _finished(tmp_path)
    assert first.name == torn.name.removesuffix(".open")
    assert first.read_bytes() == b'one\n{"tor'
    assert second.read_bytes() == b"three\n"


def test_a_living_runs_file_is_left_alone(tmp_path: Path) -> None:
    living, other = _sink(tmp_path), _sink(tmp_path, "r2")
    living.write([b"one"])
    other.write([b"two"])
    living.write([b"three"])
    other.close()
    living.close()

    assert [_lines(file) for file in _finished(tmp_path)] == [[b"one", b"three"], [b"two"]]


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    sink = _sink(tmp_path, file_bytes=10)
    for number in range(20):
        sink.write([b"%019d" % number])
    sink.close()

    assert len(os.listdir("/proc/self/fd")) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system with room for next to nothing."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with mounted_small_disk(folder, _TMPFS_BYTES):
        yield folder


def test_a_full_disk_tears_no_line_and_afterwards_all_is_written(small_disk: Path) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (_TMPFS_BYTES - 8192))
    sink = _sink(small_disk, file_bytes=1 << 20)
    lines = [b"%099d" % number for number in range(50)]
    sink.write(lines)
    more = [b"%099d" % number for number in range(50, 150)]
    for _ in range(3):
        with pytest.raises(OSError, match="No space left"):
            sink.write(more)
        (file,) = _open(small_disk)
        assert _lines(file) == lines
    filler.unlink()
    sink.write(more)
    sink.close()

    assert _lines(*_finished(small_disk)) == lines + more


def test_after_a_full_disk_the_end_leaves_whole_lines_only(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(b"x" * (_TMPFS_BYTES - 8192))
    sink = _sink(small_disk, file_bytes=1 << 20)
    sink.write([b"one"])
    with pytest.raises(OSError, match="No space left"):
        sink.write([b"y" * 9000])
    sink.close()

    assert _lines(*_finished(small_disk)) == [b"one"]


def test_a_disk_that_is_full_from_the_start_is_used_as_soon_as_there_is_room(
    small_disk: Path,
) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * _TMPFS_BYTES)
    sink = _sink(small_disk)
    for _ in range(3):
        with pytest.raises(OSError, match="No space left"):
            sink.write([b"one"])
    assert len(_open(small_disk)) == 1
    filler.unlink()
    sink.write([b"one"])
    sink.close()

    assert _lines(*_finished(small_disk)) == [b"one"]
