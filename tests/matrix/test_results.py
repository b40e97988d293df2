"""Cells are kept by broker and client, the newest in place of the one before."""

import dataclasses
from pathlib import Path

from tests.matrix import page, results
from tests.matrix.results import Cell
from tests.matrix.samples import found
from tests.runs import page as runs


def _cell(broker: str, client: str) -> Cell:
    return dataclasses.replace(found(), broker=broker, client=client)


def test_cells_are_read_as_they_were_saved(tmp_path: Path) -> None:
    assert results.load("2.4.1-zk", tmp_path) == {}
    first, other = _cell("2.4.1-zk", "java"), _cell("2.4.1-zk", "aiokafka")
    elsewhere = _cell("2.8.2-zk", "java")
    again = dataclasses.replace(first, records=200, features={"consume": "lost 1"})
    for cell in (first, other, elsewhere, again):
        cell.save(tmp_path)
    assert results.load("2.4.1-zk", tmp_path) == {"java": again, "aiokafka": other}
    assert results.load("2.8.2-zk", tmp_path) == {"java": elsewhere}


def test_the_page_is_made_of_the_cells_that_are_kept() -> None:
    assert page.FILE.read_text() == page.render(page.collect(), runs.collect())
