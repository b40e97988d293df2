"""Samples of benchmarks are read as they were written, and the pages' figures are theirs."""

from collections import Counter
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from bench.__main__ import benchmarks
from bench.control import Storm
from bench.cost import Cost
from bench.fake_cluster import Traffic
from bench.memory import Memory
from bench.pipeline.stages import Stage
from bench.samples import FOLDER, Samples
from bench.stall import Sample
from tests.harness.maven import ROOT

_PAGES = ("benchmarks.md", "pipeline.md", "simulation.md")
_MOST_BYTES = 1_000_000
#: Numbers that are not changed by rounding to five digits.
_NUMBERS = st.integers(0, 99_999).map(lambda number: number / 100)
_LISTS = st.lists(_NUMBERS, max_size=5)
#: A record without any value is none.
_SOME = st.lists(_NUMBERS, min_size=1, max_size=5)
_COUNTS = st.dictionaries(st.sampled_from(["timeout", "no_leader"]), st.integers(1, 9))
_RECORDS = st.one_of(
    st.builds(Cost, _SOME, _LISTS, _LISTS, _LISTS),
    st.builds(
        Sample,
        produce=_LISTS,
        holds=_LISTS,
        given=st.integers(0, 99),
        missed=_COUNTS.map(Counter),
        wrong=st.integers(0, 2),
    ),
    st.builds(
        Storm,
        waits=_LISTS,
        steps=st.dictionaries(st.sampled_from(["leader_hints.net.pump", "_tick"]), _NUMBERS),
        traffic=st.builds(
            Traffic,
            st.dictionaries(st.integers(0, 99), st.integers(1, 99)).map(Counter),
            partitions=st.integers(0, 10**9),
        ),
        cpu=_NUMBERS,
    ),
    st.builds(Memory, _NUMBERS, st.integers(0, 10**9), st.integers(0, 10**9)),
    st.builds(Stage, st.just("moves, again"), _NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS),
)


@given(records=st.dictionaries(st.text("ab, =", min_size=1), _RECORDS, min_size=1))
def test_records_are_read_as_they_were_added(
    records: dict[str, Sample], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("samples")
    samples = Samples()
    for arm, record in records.items():
        samples.add("all", arm, record)
    samples.write("some", folder)

    read = Samples.read("some", folder)
    assert {arm: read.get(type(of), "all", arm) for arm, of in records.items()} == records
    assert read.all(Sample, "none") == {}

    (file,) = folder.iterdir()
    before = file.read_bytes()
    read.write("some", folder)
    assert file.read_bytes() == before


def test_what_is_measured_again_keeps_none_of_its_former_arms() -> None:
    samples = Samples()
    for comparison, arm in (("storm", "1"), ("storm", "2"), ("polls", "1")):
        samples.add(comparison, arm, Sample(given=1))
    samples.forget("storm")
    assert samples.all(Sample, "storm") == {}
    assert [*samples.all(Sample, "polls")] == ["1"]


def test_samples_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(click.ClickException, match=r"some\.csv\.xz does not exist"):
        Samples.read("some", tmp_path)


# The simulation computes for a minute or two what it is compared with.
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted(file.name.split(".")[0] for file in FOLDER.glob("*.xz")))
def test_the_pages_figures_are_those_of_the_samples(name: str) -> None:
    ended = CliRunner().invoke(benchmarks, [name, "--from-samples", "--no-write"])
    pages = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in _PAGES)
    # 1 where a target is missed.
    assert isinstance(ended.exception, SystemExit | None), ended.exception
    parts = ended.output.strip().split("\n\n")
    assert [part for part in parts if part.strip() not in pages] == []


def test_samples_are_small() -> None:
    assert sum(file.stat().st_size for file in FOLDER.glob("*.xz")) < _MOST_BYTES
