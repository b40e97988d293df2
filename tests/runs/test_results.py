"""Results are kept by run and place, the newest in place of the one before."""

import dataclasses
from pathlib import Path

from tests.runs import results
from tests.runs.results import Result


def test_results_are_read_as_they_were_saved(tmp_path: Path) -> None:
    assert results.load("streams", tmp_path) == []
    first = Result("streams", "2.8.2-zk", False, 5, {"records": 9}, "", 1.0)
    other = dataclasses.replace(first, direct=True)
    elsewhere = dataclasses.replace(first, run="chain")
    again = dataclasses.replace(first, figures={}, failure="lost 1")
    for result in (first, other, elsewhere, again):
        result.save(tmp_path)
    assert results.load("streams", tmp_path) == [again, other]
    assert results.load("chain", tmp_path) == [elsewhere]
