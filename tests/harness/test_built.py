"""Tests of what is built once."""

from pathlib import Path

import pytest

from tests.harness.built import built


def test_sources_are_built_once_until_they_change(tmp_path: Path) -> None:
    source, place = tmp_path / "source", tmp_path / "place"
    source.write_text("one")
    made: list[Path] = []
    first = built(place, [source], made.append)
    assert built(place, [source], made.append) == first
    newer = built(place, [source], made.append, also="2.8.2")
    source.write_text("two")
    changed = built(place, [source], made.append)
    assert made == [first, newer, changed]
    assert len({first, newer, changed}) == len(made)


def test_what_failed_is_built_again_from_nothing(tmp_path: Path) -> None:
    source, place = tmp_path / "source", tmp_path / "place"
    source.write_text("one")

    def fail(folder: Path) -> None:
        (folder / "part").touch()
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        built(place, [source], fail)
    folder = built(place, [source], lambda folder: (folder / "program").touch())
    assert sorted(file.name for file in folder.iterdir()) == ["complete", "program"]
