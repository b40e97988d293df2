"""The journal's files: finished ones are whole, a full disk tears nothing, the bound is kept."""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from leader_hints.net.journal.journal_files import FileSink
from leader_hints.net.journal.sink import LinesLostError
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
    sink = _sink(tmp_path, stamp=lambda: "20260102T000000Z")
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


def test_the_newest_file_stays_though_it_is_larger_than_all_may_be(tmp_path: Path) -> None:
    """It was removed as soon as it was finished, where ``kept_bytes`` is ``file_bytes``."""
    sink = _sink(tmp_path, file_bytes=100, kept_bytes=100)
    for number in range(20):
        sink.write([b"%029d" % number])
    assert _lines(*_finished(tmp_path)) == [b"%029d" % number for number in range(12, 16)]
    sink.close()
    assert _lines(*_finished(tmp_path)) == [b"%029d" % number for number in range(16, 20)]


def test_the_oldest_are_removed_although_the_clock_was_set_back(tmp_path: Path) -> None:
    before = _sink(tmp_path, "r0", file_bytes=10, stamp=lambda: "20260301T000000Z")
    before.write([b"%019d" % 0])
    before.close()
    now = "20260302T000000Z"
    sink = _sink(tmp_path, file_bytes=10, kept_bytes=50, stamp=lambda: now)
    for number in range(1, 5):
        if number == 3:
            now = "20260101T000000Z"
        sink.write([b"%019d" % number])
    sink.close()
    assert sorted(_lines(*_finished(tmp_path))) == [b"%019d" % number for number in (3, 4)]


def test_files_of_a_clock_that_was_ahead_are_the_first_to_be_removed(tmp_path: Path) -> None:
    for run, stamp in enumerate(["20361130T000000Z", "20260101T000000Z", "20260102T000000Z"]):
        sink = _sink(tmp_path, f"r{run}", file_bytes=10, kept_bytes=50, stamp=lambda at=stamp: at)
        sink.write([b"%019d" % run])
        sink.close()
    assert sorted(_lines(*_finished(tmp_path))) == [b"%019d" % number for number in (1, 2)]


def test_in_a_takeover_the_former_process_removes_its_own_files_first(tmp_path: Path) -> None:
    former = _sink(tmp_path, "r0", file_bytes=10, kept_bytes=50)
    for number in range(5):
        former.write([b"%019d" % number])
    later = _sink(tmp_path, "r1", file_bytes=10, kept_bytes=50)
    later.write([b"%019d" % 10])
    later.write([b"%019d" % 11])
    # It writes of its last links.
    former.write([b"%019d" % 5])
    later.write([b"%019d" % 12])
    former.close()
    later.close()
    assert sorted(_lines(*_finished(tmp_path))) == [b"%019d" % number for number in (11, 12)]


def test_files_that_come_with_a_mount_are_older_than_this_runs(tmp_path: Path) -> None:
    folder, mounted = tmp_path / "folder", tmp_path / "mounted"
    folder.mkdir()
    mounted.mkdir()
    for number, run in enumerate(["r0", "r1"]):
        before = _sink(mounted, run, file_bytes=10, stamp=lambda: "20260101T000000Z")
        before.write([b"%019d" % number])
        before.close()
    sink = _sink(folder, "r2", file_bytes=10, kept_bytes=50)
    sink.write([b"%019d" % 2])
    folder.rename(tmp_path / "hidden")
    mounted.rename(folder)
    sink.write([b"%019d" % 3])
    sink.close()
    assert sorted(_lines(*_finished(folder))) == [b"%019d" % number for number in (2, 3)]


def test_a_file_that_cannot_be_removed_keeps_no_line_from_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of another user in a folder with the sticky bit."""
    kept = tmp_path / "side.car-1_20250101T000000Z_r0_000002.jsonl"
    kept.write_bytes(b"x" * 99)
    older = tmp_path / "side.car-1_20250101T000000Z_r0_000001.jsonl"
    older.write_bytes(b"x" * 99)
    unlink = Path.unlink

    def refused(path: Path, missing_ok: bool = False) -> None:
        if path == kept:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refused)
    sink = _sink(tmp_path, file_bytes=10, kept_bytes=50)
    for number in range(4):
        sink.write([b"%019d" % number])
    sink.close()
    assert not older.exists()
    mine = [file for file in _finished(tmp_path) if file != kept]
    assert _lines(*mine) == [b"%019d" % number for number in (2, 3)]


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


def test_what_killed_runs_leave_behind_is_bounded_too(tmp_path: Path) -> None:
    """As where each run is killed before it has finished a file of its own."""
    for run in range(20):
        left = tmp_path / f"side.car-1_20250101T{run:06}Z_r{run}_000001.jsonl.open"
        left.write_bytes(b"%099d\n" % run)
        _sink(tmp_path, f"next-{run}", kept_bytes=250).write([])

    assert _lines(*_finished(tmp_path)) == [b"%099d" % run for run in (18, 19)]


def test_what_a_run_leaves_behind_that_is_killed_later_is_finished_with_the_next_file(
    tmp_path: Path,
) -> None:
    """As the process that this one took over from, while its links come to rest."""
    left = tmp_path / "side.car-1_20250101T000000Z_r0_000001.jsonl.open"
    sink = _sink(tmp_path, file_bytes=10)
    with left.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(b"one\n")
        sink.write([b"%019d" % 2])
        sink.write([b"%019d" % 3])
        assert left.exists()
    sink.write([b"%019d" % 4])

    assert not left.exists()
    assert _lines(_finished(tmp_path)[0]) == [b"one"]
    assert len(_open(tmp_path)) == 1


def _flock_of_nfs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have locks as on NFS, where an exclusive one needs a file that may be written (flock(2))."""
    lock = fcntl.flock

    def flock(file: Any, operation: int) -> None:
        if operation & fcntl.LOCK_EX and fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE == 0:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", flock)


def test_on_nfs_a_killed_runs_file_is_finished_and_a_living_ones_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _flock_of_nfs(monkeypatch)
    torn = tmp_path / "side.car-1_20250101T000000Z_r0_000003.jsonl.open"
    torn.write_bytes(b"one\n")
    living = _sink(tmp_path, "r2")
    living.write([b"two"])
    sink = _sink(tmp_path)
    sink.write([b"three"])
    sink.close()

    assert [_lines(file) for file in _finished(tmp_path)] == [[b"one"], [b"three"]]
    living.close()


def test_a_living_runs_file_is_left_alone(tmp_path: Path) -> None:
    living, other = _sink(tmp_path), _sink(tmp_path, "r2")
    living.write([b"one"])
    other.write([b"two"])
    living.write([b"three"])
    other.close()
    living.close()

    assert [_lines(file) for file in _finished(tmp_path)] == [[b"one", b"three"], [b"two"]]


def _held_open(folder: Path) -> list[str]:
    """What this process has open in a folder, and the folder itself.

    How many descriptors there are in all is none of the journal's: what former tests have left in
    cycles is closed at some time, and their look-ups of names, which have threads, come and go.
    """
    held = []
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            held.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return [path for path in held if Path(path).is_relative_to(folder)]


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    sink = _sink(tmp_path, file_bytes=10)
    for number in range(20):
        sink.write([b"%019d" % number])
        assert len(_held_open(tmp_path)) == 1
    sink.close()

    assert _held_open(tmp_path) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system with room for next to nothing."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with mounted_small_disk(folder, _TMPFS_BYTES):
        yield folder


def _nearly_full(disk: Path) -> tuple[FileSink, Path]:
    """A journal of one line, and the file that leaves it little room."""
    filler = disk / "filler"
    filler.write_bytes(b"x" * (_TMPFS_BYTES - 8192))
    sink = _sink(disk)
    sink.write([b"one"])
    return sink, filler


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


# What goes wrong with a file that is being written.


def _take_away(folder: Path) -> None:
    (file,) = _open(folder)
    file.unlink()


def _put_another_in_its_place(folder: Path) -> None:
    (file,) = _open(folder)
    file.unlink()
    file.write_bytes(b"somebody else's\n")


def _move_away(folder: Path) -> None:
    (file,) = _open(folder)
    file.rename(folder / "elsewhere")


@pytest.mark.parametrize("harm", [_take_away, _put_another_in_its_place, _move_away])
@pytest.mark.parametrize("then", ["write", "finish"])
def test_a_file_that_was_taken_away_is_replaced_and_loses_no_line(
    tmp_path: Path, harm: Callable[[Path], None], then: str
) -> None:
    sink = _sink(tmp_path, file_bytes=1 << 22, kept_bytes=1 << 22)
    lines = [b"%0999d" % number for number in range(2000)]  # More than is copied at once.
    sink.write(lines[:-1])
    harm(tmp_path)
    if then == "write":
        sink.write(lines[-1:])
    sink.close()

    assert _lines(*_finished(tmp_path)) == (lines if then == "write" else lines[:-1])
    sink.close()
    # The next run finishes what somebody else has put there, and nothing more.
    assert len(_finished(tmp_path)) == 1


def test_while_the_folder_is_gone_nothing_is_taken_and_afterwards_nothing_is_lost(
    tmp_path: Path,
) -> None:
    folder, elsewhere = tmp_path / "journal", tmp_path / "elsewhere"
    folder.mkdir()
    sink = _sink(folder)
    sink.write([b"one"])
    folder.rename(elsewhere)
    for _ in range(3):
        with pytest.raises(FileNotFoundError):
            sink.write([b"two"])
    with pytest.raises(FileNotFoundError):
        sink.close()
    folder.mkdir()
    sink.write([b"two"])
    sink.close()

    assert _lines(*_finished(folder)) == [b"one", b"two"]
    assert _lines(*_open(elsewhere)) == [b"one"]


class _Failing:
    """In place of a function of `os`: fails so many ``times`` where it ``concerns`` the file."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, name: str, number: int, times: int, folders: bool
    ) -> None:
        self._work = getattr(os, name)
        self._number = number
        self._times = times
        self._folders = folders
        monkeypatch.setattr(os, name, self)

    def __call__(self, file: int, *arguments: Any) -> Any:
        if self._times and stat.S_ISDIR(os.fstat(file).st_mode) is self._folders:
            self._times -= 1
            raise OSError(self._number, os.strerror(self._number))
        return self._work(file, *arguments)


@pytest.mark.parametrize("number", [errno.EIO, errno.EINVAL, errno.ENOTSUP, errno.EACCES])
@pytest.mark.parametrize("times", [1, 1000])
def test_a_folder_that_is_not_synced_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, times: int
) -> None:
    """Once by chance, or always, as some file systems of FUSE and SMB refuse it."""
    sink = _sink(tmp_path, file_bytes=10)
    _Failing(monkeypatch, "fsync", number, times, folders=True)
    for line in range(5):
        sink.write([b"%019d" % line])
    sink.close()

    assert len(_finished(tmp_path)) == 5
    assert _lines(*_finished(tmp_path)) == [b"%019d" % line for line in range(5)]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_syncs_no_file_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    sink = _sink(tmp_path, file_bytes=10)
    _Failing(monkeypatch, "fsync", number, 1000, folders=False)
    for line in range(5):
        sink.write([b"%019d" % line])
    sink.close()

    assert _lines(*_finished(tmp_path)) == [b"%019d" % line for line in range(5)]


def test_a_file_that_could_not_be_synced_is_copied_and_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux reports a failed write-back once: a second fsync of the file reports success."""
    sink = _sink(tmp_path)
    sink.write([b"one"])
    (spoilt,) = _open(tmp_path)
    _Failing(monkeypatch, "fsync", errno.EIO, 1, folders=False)
    with pytest.raises(OSError, match="Input/output error"):
        sink.close()
    sink.close()

    (file,) = _finished(tmp_path)
    assert file.read_bytes() == b"one\n"
    assert file.name.removesuffix(".jsonl") != spoilt.name.removesuffix(".jsonl.open")
    assert not _open(tmp_path)


def test_a_torn_file_that_cannot_be_cut_is_copied_as_far_as_it_is_whole(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, filler = _nearly_full(small_disk)
    _Failing(monkeypatch, "ftruncate", errno.ENOTSUP, 1000, folders=False)
    for _ in range(3):
        with pytest.raises(OSError, match="No space left"):
            sink.write([b"y" * 9000])
    filler.unlink()
    sink.write([b"two"])
    sink.close()

    assert _lines(*_finished(small_disk)) == [b"one", b"two"]
    assert not _open(small_disk)


@pytest.mark.parametrize("harm", ["cut", "stale"])
def test_lines_that_cannot_be_read_any_more_are_reported_and_the_journal_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    """As where a server of NFS has lost a file (ESTALE), or a daemon of FUSE was restarted."""
    sink = _sink(tmp_path)
    sink.write([b"one", b"two"])
    sink.write([b"three"])
    (file,) = _open(tmp_path)
    if harm == "cut":
        os.truncate(file, 1)
    else:
        _Failing(monkeypatch, "pread", errno.ESTALE, 1, folders=False)
        file.unlink()
    with pytest.raises(LinesLostError) as lost:
        sink.write([b"four"])
    assert (lost.value.first, lost.value.last) == (b"one", b"three")
    assert file.name in str(lost.value)
    sink.write([b"four"])
    sink.close()

    # What is left of it is for its readers: its last line is torn.
    assert _lines(*_finished(tmp_path)) == ([b"o"] if harm == "cut" else []) + [b"four"]


def test_a_file_that_is_left_for_its_readers_has_no_line_that_comes_again(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three failures at the same time: the disk is full, cuts nothing, and reads nothing."""
    sink, filler = _nearly_full(small_disk)
    _Failing(monkeypatch, "ftruncate", errno.EIO, 1, folders=False)
    with pytest.raises(OSError, match="No space left"):
        sink.write([b"two", b"y" * 9000])
    filler.unlink()
    _Failing(monkeypatch, "pread", errno.EIO, 1, folders=False)
    with pytest.raises(LinesLostError):
        sink.write([b"two"])
    sink.write([b"two"])
    sink.close()
    assert _lines(*_finished(small_disk)) == [b"one", b"two"]


def test_a_journal_that_failed_leaves_no_descriptor_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for harm in (_take_away, _move_away):
        sink = _sink(tmp_path)
        sink.write([b"one"])
        harm(tmp_path)
        assert len(_held_open(tmp_path)) == 1
        sink.write([b"two"])
        _Failing(monkeypatch, "fsync", errno.EIO, 1, folders=False)
        with pytest.raises(OSError, match="Input/output error"):
            sink.close()
        sink.close()

    assert _held_open(tmp_path) == []
